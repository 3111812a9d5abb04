// SPDX-License-Identifier: BSD-3-Clause
/* Runs the case named by the argument, in a runtime directory of its own. */
#include <ftw.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "rdv/admin.h"
#include "tests/prog/rdv/help.h"

char run_dir[64] = "/tmp/weft-test-XXXXXX";
char log_path[96];

static const char *const fabrics[] = {"default", "a", "b"};

static const struct test_case *find_case(const char *name)
{
	const struct test_case *tables[] = {
		life_cases, start_cases, hostile_cases, user_cases, wire_cases, fabric_cases};

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		for (const struct test_case *c = tables[i]; c->name; c++)
			if (strcmp(c->name, name) == 0)
				return c;
	return NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st, (void)type, (void)f;
	return remove(path);
}

static void clean_up(void)
{
	for (size_t i = 0; i < sizeof fabrics / sizeof *fabrics; i++) {
		pid_t pid = weftd_pid(fabrics[i]);

		if (pid > 0 && rdv_shutdown(fabrics[i]))
			kill(pid, SIGKILL);
	}
	nftw(run_dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	nftw(log_path, remove_one, 8, FTW_PHYS);
}

static void set_up(void)
{
	CHECK(mkdtemp(run_dir));
	snprintf(log_path, sizeof log_path, "%s.log", run_dir);
	unsetenv("WEFT_FABRIC");
	unsetenv("WEFT_NODE");
	unsetenv("WEFT_AUTOSTART");
	setenv("WEFT_RUNTIME_DIR", run_dir, 1);
	setenv("WEFT_IDLE_EXIT", "20", 1);
	snprintf(log_path, sizeof log_path, "%s.log", run_dir);
	setenv("WEFT_LOG", "info:", 1);
}

/* In a process of its own, so that cleaning up is done however it ends. */
static int run_case(const struct test_case *c)
{
	char spec[128];
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		snprintf(spec, sizeof spec, "info:%s", log_path);
		setenv("WEFT_LOG", spec, 1);
		exit(c->run());
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void show_log(void)
{
	char line[1024];
	FILE *f = fopen(log_path, "re");

	while (f && fgets(line, sizeof line, f))
		fputs(line, stderr);
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	const struct test_case *c = argc == 2 ? find_case(argv[1]) : NULL;
	int ret;

	if (!c) {
		fprintf(stderr, "usage: %s CASE\n", argv[0]);
		return 2;
	}
	set_up();
	ret = run_case(c);
	if (ret == 1)
		show_log();
	clean_up();
	return ret;
}
