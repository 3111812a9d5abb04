/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where weftd and its clients meet: the runtime directory and the names in it.
 *
 *   $WEFT_RUNTIME_DIR, else $XDG_RUNTIME_DIR/weft, else /tmp/weft-<uid>     mode 0700
 *     NAME.sock    weftd listens here
 *     NAME.lock    flock: held by a client while it starts weftd
 *     NAME.epoch   flock: held by weftd while it runs; counts its starts
 *     NAME.qpns    which claims of queue pair numbers weftd holds (daemon/tables/claims.h)
 *     NAME.ch/     the sockets of event channels, named by weftd (daemon/tables/channel_names.h)
 *     NAME.tree    device files, written by weftd (fabric/sysfs.h), read through the path shim; of
 *                  node N of a topology, but 0, NAME.tree.N
 *     NAME.topo    the topology, if the fabric has one (daemon/subnet_files.h)
 *     NAME.lids    which port of it has which LID
 *     NAME.address the one address of this machine that it has (rdv/address.h); without: all
 *
 * NAME is the fabric; for "default", which owns the addresses of one network namespace, it is
 * "default-<inode of that namespace>".  The uid is the one outside this process's user namespace.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { FABRIC_NAME_MAX = 32 };

struct rdv_paths {
	int dir_fd;         /* O_PATH, CLOEXEC; -1 when closed */
	char dir[PATH_MAX]; /* for messages */
	char fabric[FABRIC_NAME_MAX + 1];
	char name[FABRIC_NAME_MAX + 32];
};

/*
 * True if name is a legal fabric name: 1 to 32 of A-Z a-z 0-9 _ . -, starting neither with a dot
 * nor with "default-".
 */
bool rdv_fabric_name_ok(const char *name);

/*
 * The number of the node that a WEFT_NODE names, decimal, at most 65535: of the fabric's topology,
 * or without one of SCIF; 0 for none (NULL or empty) and for weft0.  -EINVAL: it is no node.
 */
int rdv_node_number(const char *s);

/* The fabric to use if none is named: $WEFT_FABRIC, else "default". */
const char *rdv_fabric_name(void);

/*
 * Writes the path of the runtime directory into buf; creates nothing, checks nothing.
 * -ENAMETOOLONG; -EINVAL: WEFT_RUNTIME_DIR is relative.
 */
int rdv_dir_path(char *buf, size_t size);

/*
 * Opens the runtime directory, creating it if need be, and forms the names.  -EACCES: it is not
 * ours alone; -EINVAL: a bad fabric name or a relative path; all are logged.  On success close with
 * rdv_paths_close().
 */
int rdv_paths_open(struct rdv_paths *p, const char *fabric);
void rdv_paths_close(struct rdv_paths *p);

/* The address of file NAME.sock, short enough for sun_path however deep the directory lies. */
socklen_t rdv_sock_addr(const struct rdv_paths *p, struct sockaddr_un *addr);

/*
 * The address of socket name, which may have directories in it, in directory dir.  false: too long
 * for sun_path.
 */
bool rdv_plain_addr(const char *dir, const char *name, struct sockaddr_un *addr);

/* NAME.suffix, as long as it may be. */
struct rdv_file_name {
	char s[FABRIC_NAME_MAX + 48];
};
struct rdv_file_name rdv_file_name(const struct rdv_paths *p, const char *suffix);

/* Is there a NAME.suffix? */
bool rdv_has_file(const struct rdv_paths *p, const char *suffix);

enum { RDV_TREE_NAME = FABRIC_NAME_MAX + 64 };

/*
 * The name of the tree of the node of WEFT_NODE: a fabric with a topology has one for each but 0;
 * without one all nodes share that of 0.  Of what is no node there is no tree.
 */
void rdv_tree_name(const struct rdv_paths *p, char name[RDV_TREE_NAME]);

/* Opens NAME.suffix for reading and writing, creating it.  Returns an fd or -errno. */
int rdv_open_file(const struct rdv_paths *p, const char *suffix);

/* Opens NAME.suffix for reading.  Returns an fd or -errno; -EINVAL: it is no regular file. */
int rdv_open_to_read(const struct rdv_paths *p, const char *suffix);

/* Makes NAME.suffix, for writing, anew, whatever was there.  Returns an fd or -errno. */
int rdv_open_anew(const struct rdv_paths *p, const char *suffix);

/* Inode of /proc/self/ns/<which>, 0 if it cannot be had. */
uint64_t rdv_namespace(const char *which);
