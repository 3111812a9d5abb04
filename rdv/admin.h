/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weftd as its administrator sees it: what `weft up`, `weft down` and `weft status` call.  These
 * functions make a connection of their own, do not attach the process, and none but rdv_start()
 * ever starts weftd.  Thread safe.  Each may block up to 5 s.
 *
 * fabric: its name; NULL means $WEFT_FABRIC, else "default".
 *
 * Common errors (negative errno): -ENOTCONN no weftd serves that fabric (not logged), -EINVAL a
 * bad fabric name, -EACCES runtime directory or daemon of another user, -EPROTO version
 * mismatch, -ETIMEDOUT weftd did not answer within 5 s (stopped?) or was not ready 30 s after
 * its start.  All but -ENOTCONN are explained by one log line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Asks whether weftd answers; *pid (may be NULL): its pid as we see it, 0 if we cannot. */
int rdv_ping(const char *fabric, int32_t *pid);

/*
 * The state of weftd as one JSON object, see weftd(8), in *json: a string that the caller
 * frees.  -ENOMEM.
 */
int rdv_status_json(const char *fabric, char **json);

/*
 * Tells weftd to leave, whatever is attached, and waits until it has.  Attached processes go on
 * with their local traffic; their next control call starts a new weftd.
 */
int rdv_shutdown(const char *fabric);

/*
 * Starts weftd unless it runs already, whatever WEFT_AUTOSTART says.  stay: it does not leave
 * when idle, a running one from now on.  *pid (may be NULL) as for rdv_ping().  -ENOENT: no
 * weftd executable found; other errors: it could not start, the log line has its reason.
 */
int rdv_start(const char *fabric, bool stay, int32_t *pid);

/*
 * Gives processes rules of faults to inject into packets (weft-fault(1)); an empty text: none any
 * more.  pid: of one process, 0: all, and those to come.  *reached: how many there are.  -EINVAL:
 * the text has no meaning; -ESRCH: no such process.
 */
int rdv_fault(const char *fabric, int32_t pid, const char *text, uint32_t *reached);

/* The runtime directory, created if need be, in buf.  -EACCES, -ENAMETOOLONG, -ENOENT. */
int rdv_runtime_dir(char *buf, size_t size);
