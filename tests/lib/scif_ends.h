/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SCIF endpoints for test programs, over the public <scif.h> alone.  One that has included
 * "weft/scif_kernel.h" keeps that convention, and gets its endpoints by weft_scif_from_fd().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifndef WEFT_SCIF_KERNEL_H
#include "scif.h"
#endif

/* Two connected endpoints of this process. */
struct scif_pair {
	int listener, a, b; /* a connected, b was accepted */
	uint16_t port;
};

/* A listener on a free port, which is put in *port. */
int scif_listener(int backlog, uint16_t *port);
/* The CM's port behind a SCIF port of node 0, which a process listens at. */
uint16_t scif_cm_port(uint16_t port);
/* Connects to a port of our own node, waiting. */
int scif_dial(uint16_t node, uint16_t port);
struct scif_pair scif_make_pair(void);
void scif_end_pair(struct scif_pair *p);

/* Zeroed pages, page aligned, never freed. */
void *scif_pages(size_t len);

/* Can windows be mapped?  Not with WEFT_SHARE=never. */
bool scif_can_map(void);

/* Also if their memory was a window before?  Not before Linux 5.19, as there are threads. */
bool scif_can_map_again(void);

/* What poll(2) says within ms of those events. */
short scif_raw_poll(int epd, short events, int ms);
/* What scif_poll() says; -1: nothing within ms. */
int scif_events(int epd, short events, long ms);

/* A child process and pipes to it and back; it exits with its failures. */
struct scif_child {
	pid_t pid;
	int to, from;
};
struct scif_child scif_fork(void (*fn)(int in, int out));
/* Waits for its end and counts its failures. */
void scif_join(struct scif_child *c);
/* Words through such pipes. */
void scif_tell(int fd, uint64_t word);
uint64_t scif_hear(int fd);
