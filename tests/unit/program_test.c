// SPDX-License-Identifier: BSD-3-Clause
/* What weft run sees of a command and of the file of a program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/common/elf.h"
#include "cli/common/program.h"
#include "cli/common/wrapper.h"

/* ---- commands ---- */

/* A command; what keeps its program from Weft, or else the words that it starts, each with a blank.
 */
static const struct {
	const char *command, *name, *inner;
} commands[] = {
	{"ls -l", NULL, ""},
	{"/usr/bin/env ls -l", NULL, "ls -l "},
	{"env", NULL, ""},
	{"env -i ls", "env -i", ""},
	{"env - ls", "env -i", ""},
	{"env -vi ls", "env -i", ""},
	{"env --ignore-environment A=b ls", "env -i", ""},
	{"env -i LD_LIBRARY_PATH=/lib ls", NULL, "ls "},
	{"env -u LD_LIBRARY_PATH ls", "env -u", ""},
	{"env -uLD_LIBRARY_PATH ls", "env -u", ""},
	{"env --unset=LD_LIBRARY_PATH ls", "env -u", ""},
	{"env -u HOME -C / A=b -- ls", NULL, "-- ls "},
	{"env -u", NULL, ""},
	{"env -- A=b ls -i", NULL, "ls -i "},
	{"env -S", NULL, ""},
	{"env -Sls -l", NULL, "ls -l "},
	{"env --split-string=-i ls", "env -i", ""},
	{"env -S-Sls -i ls", "env -i", ""},
	{"/usr/bin/sudo -u you ls", "sudo", ""},
	{"su you", NULL, ""},
	{"su - you", "su", ""},
	{"ssh there ls", "ssh", ""},
};

static void join(char **words, char text[256])
{
	*text = '\0';
	for (; words && *words; words++) {
		strcat(text, *words);
		strcat(text, " ");
	}
}

static void wrappers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		char text[256], inner[256], *words[16], *save = NULL;
		struct wrapper w;
		int n = 0;

		strcpy(text, commands[i].command);
		words[n] = strtok_r(text, " ", &save);
		while (words[n])
			words[++n] = strtok_r(NULL, " ", &save);
		wrapper_look(words, &w);
		join(w.inner, inner);
		if ((w.name ? strcmp(w.name, commands[i].name ? commands[i].name : "") != 0
			    : commands[i].name != NULL) ||
			strcmp(inner, commands[i].inner) != 0)
			fail_msg("%s: by %s, starts '%s'", commands[i].command,
				w.name ? w.name : "nothing", inner);
	}
}

/* More words than there is room for are left away. */
static void long_string(void **state)
{
	char string[2 * WRAPPER_TEXT], *cmd[] = {"env", "-S", string, "more", NULL};
	struct wrapper w;

	(void)state;
	for (size_t i = 0; i < sizeof string; i++)
		string[i] = i % 2 ? ' ' : 'a';
	string[sizeof string - 1] = '\0';
	wrapper_look(cmd, &w);
	assert_non_null(w.inner);
	assert_null(w.words[WRAPPER_WORDS - 1]);
}

/* ---- files ---- */

struct file {
	int fd;
	char path[32];
	uint8_t *text;
	size_t size;
};

/* A copy of this program. */
static struct file copy_of_ours(void)
{
	struct file f = {.fd = memfd_create("program", 0)};
	int own = open("/proc/self/exe", O_RDONLY);

	f.size = lseek(own, 0, SEEK_END);
	f.text = malloc(f.size);
	assert_int_equal(pread(own, f.text, f.size, 0), f.size);
	close(own);
	snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", f.fd);
	return f;
}

static void put(struct file *f, size_t size)
{
	assert_int_equal(ftruncate(f->fd, 0), 0);
	assert_int_equal(pwrite(f->fd, f->text, size, 0), size);
}

static void drop(struct file *f)
{
	close(f->fd);
	free(f->text);
}

static const char *why(struct file *f)
{
	static struct program_verdict v;
	char *cmd[] = {f->path, NULL};

	program_look(cmd, "/nowhere", &v);
	return v.why;
}

static bool needs(const struct elf_facts *f, const char *name)
{
	for (const char *at = f->needed; *at; at += strlen(at) + 1)
		if (!strncmp(at, name, strlen(name)))
			return true;
	return false;
}

static void our_own(void **state)
{
	struct file f = copy_of_ours();
	struct elf_facts facts;

	(void)state;
	put(&f, f.size);
	assert_int_equal(elf_read(f.fd, &facts), 0);
	assert_int_equal(facts.bits, 8 * sizeof(void *));
	assert_false(facts.foreign);
	assert_non_null(strstr(facts.interp, "/ld-"));
	assert_true(needs(&facts, "libcmocka.so."));
	assert_true(needs(&facts, "libc.so.6"));
	assert_string_equal(why(&f), "");
	drop(&f);
}

/* Where its interpreter is named there is nothing any more. */
static void make_static(struct file *f)
{
	Elf64_Ehdr *e = (Elf64_Ehdr *)f->text;
	Elf64_Phdr *p = (Elf64_Phdr *)(f->text + e->e_phoff);

	for (unsigned i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_INTERP)
			p[i].p_type = PT_NULL;
}

static void others(void **state)
{
	struct file f = copy_of_ours();
	Elf64_Ehdr *e = (Elf64_Ehdr *)f.text;
	const uint16_t machine = e->e_machine;

	(void)state;
	e->e_machine = EM_RISCV;
	put(&f, f.size);
	assert_non_null(
		strstr(why(&f), "' is a program for riscv64, and Weft's libraries are for "));
	e->e_machine = __builtin_bswap16(EM_S390);
	e->e_ident[EI_DATA] ^= ELFDATA2LSB ^ ELFDATA2MSB;
	put(&f, f.size);
	assert_non_null(strstr(why(&f), "' is a program for s390x, "));
	e->e_ident[EI_DATA] ^= ELFDATA2LSB ^ ELFDATA2MSB;
	e->e_machine = machine;
	e->e_ident[EI_CLASS] = ELFCLASS32;
	put(&f, f.size);
	assert_non_null(strstr(why(&f), "32"));
	e->e_ident[EI_CLASS] = ELFCLASS64;
	make_static(&f);
	put(&f, f.size);
	assert_non_null(strstr(why(&f), "' is linked statically"));
	drop(&f);
}

/* Cut off anywhere it is still something or other. */
static void cut_off(void **state)
{
	struct file f = copy_of_ours();
	struct elf_facts facts;

	(void)state;
	for (size_t n = 0; n < 2048; n += 3) {
		put(&f, n);
		assert_int_equal(elf_read(f.fd, &facts),
			n < sizeof(Elf32_Ehdr) ||
					(n < sizeof(Elf64_Ehdr) && f.text[EI_CLASS] == ELFCLASS64)
				? -ENOEXEC
				: 0);
	}
	drop(&f);
}

/* A script that runs itself has nothing wrong with it that we could see, and comes to an end. */
static void circle(void **state)
{
	struct file f = copy_of_ours();

	(void)state;
	f.size = snprintf((char *)f.text, f.size, "#! %s\n", f.path);
	put(&f, f.size);
	assert_string_equal(why(&f), "");
	f.size = snprintf((char *)f.text, f.size, "#!");
	put(&f, f.size);
	assert_string_equal(why(&f), "");
	drop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrappers),
		cmocka_unit_test(long_string),
		cmocka_unit_test(our_own),
		cmocka_unit_test(others),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(circle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
