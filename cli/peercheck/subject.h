/* SPDX-License-Identifier: BSD-3-Clause */
/* The client under test and its device, in the process of one scenario. */
#pragma once

#include <stdbool.h>

#include "include/weft/peercheck.h"
#include "kshim/kshim.h"

/* What the command line says. */
struct subject_spec {
	const char *client; /* file */
	const char *device; /* "nvidia", "kfd", "vma", "own", or the file of a library */
	bool device_given;  /* else it is a guess, and the client may bring its own */
	char letter;        /* the generation that the core behaves as */
	bool old_freeing;   /* the device's driver is one of long ago */
};

struct subject {
	void *loaded; /* its library */
	const struct weft_peer_device *device;
	void *device_library;      /* NULL: the device is the client's, or the shim's */
	const struct kshim *kshim; /* NULL: the client does not use the shim */
	bool inited;
};

extern struct subject subject;

/*
 * Loads the client, without letting it begin, and its device.  NULL, or why not, which stays valid.
 */
const char *subject_load(const struct subject_spec *spec);

/* The client begins, and ends: its init_module(), whose answer is returned; cleanup_module(). */
int subject_init(void);
void subject_exit(void);
