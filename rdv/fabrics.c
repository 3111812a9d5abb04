// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/fabrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unix_names.h"

enum { NAME_MAX_LEN = 107, LOOKS_MAX = 1024, FIELD = 64 };

static const char prefix[] = "weft-fabric/";

int rdv_fabric_show(const char *fabric, uint64_t guid)
{
	char name[NAME_MAX_LEN + 1];

	snprintf(name, sizeof name, "%s%u/%d/%s/%016" PRIx64, prefix, (unsigned)geteuid(),
		(int)getpid(), fabric, guid);
	return unix_name_listen(name, SOMAXCONN);
}

struct search {
	struct rdv_fabric *out;
	size_t n;
	uint64_t but;
	unsigned looks;
};

/* What the name says, as far as it is one of ours. */
static bool read_name(const char *name, struct rdv_fabric *f)
{
	char fabric[FIELD], guid[FIELD], rest;
	unsigned uid;
	int pid;

	if (sscanf(name + strlen(prefix), "%u/%d/%63[^/]/%63[0-9a-f]%c", &uid, &pid, fabric, guid,
		    &rest) != 4 ||
		!rdv_fabric_name_ok(fabric))
		return false;
	strcpy(f->name, fabric);
	return sscanf(guid, "%" SCNx64, &f->guid) == 1;
}

/* Does somebody live there, and who? */
static bool ask_kernel(const char *name, struct rdv_fabric *f)
{
	struct ucred cred;
	int fd = unix_name_meet_listener(name, &cred);

	if (fd < 0)
		return false;
	close(fd);
	f->uid = cred.uid;
	f->pid = cred.pid;
	return true;
}

static bool look(void *arg, const char *name)
{
	struct search *s = arg;
	struct rdv_fabric f;

	if (read_name(name, &f) && (!s->but || f.guid != s->but) && ask_kernel(name, &f))
		s->out[s->n++] = f;
	return s->n < RDV_FABRICS_MAX && ++s->looks < LOOKS_MAX;
}

size_t rdv_fabrics_find(struct rdv_fabric out[RDV_FABRICS_MAX], uint64_t but)
{
	struct search s = {.out = out, .but = but};
	int saved = errno;

	unix_names_each(prefix, look, &s);
	errno = saved;
	return s.n;
}

static int one_text(char *text, size_t size, const struct rdv_fabric *f)
{
	if (f->pid > 0)
		return snprintf(text, size, "fabric \"%s\" of user %u (weftd %d)", f->name,
			(unsigned)f->uid, (int)f->pid);
	return snprintf(text, size, "fabric \"%s\" of user %u (in another pid namespace)", f->name,
		(unsigned)f->uid);
}

void rdv_fabrics_text(char *text, size_t size, const struct rdv_fabric *all, size_t n)
{
	static const char more[] = ", and others";
	size_t len = 0;

	*text = '\0';
	for (size_t i = 0; i < n; i++) {
		char one[2 * FIELD + FABRIC_NAME_MAX];
		size_t want = one_text(one, sizeof one, &all[i]) + (i ? 2 : 0);

		if (len + want + sizeof more > size) {
			snprintf(text + len, size - len, "%s", i ? more : "others");
			return;
		}
		len += snprintf(text + len, size - len, "%s%s", i ? ", " : "", one);
	}
}
