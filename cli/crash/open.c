// SPDX-License-Identifier: BSD-3-Clause
#include "cli/crash/open.h"

#include <errno.h>

#include "cli/common/say.h"

int crash_open(struct journal *j, const char *path, bool writable)
{
	int rc = journal_open(j, path, writable);
	struct journal_damage d;

	if (rc == -EPROTO)
		return cli_fail("%s is no journal; weft crash run makes one", path);
	if (rc == -EBADMSG)
		return cli_fail("%s is damaged: it has %llu bytes, and its head (from byte 0 on) "
				"does not fit that; was it cut short?  Record it again",
			path, (unsigned long long)j->size);
	if (rc == -EOWNERDEAD)
		return cli_fail("%s was not saved: %s before it could do that; record it again",
			path, journal_error(rc));
	if (rc)
		return cli_fail("cannot open %s: %s; give the file that weft crash run made", path,
			journal_error(rc));
	if (writable || !journal_verify(j, &d))
		return EXIT_OK;
	journal_close(j);
	return cli_fail("%s is damaged at byte %llu: %s; record it again", path,
		(unsigned long long)d.at, d.what);
}
