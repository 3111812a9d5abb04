/* SPDX-License-Identifier: BSD-3-Clause */
/* What one vendor's driver is asked for: a row for each.  They are called in any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An allocation of device memory, or what was mapped at once into reserved addresses. */
struct gpu_range {
	uint64_t start, size;
	uint64_t id; /* of no other allocation of the process, before or later */
	int device;
	void *context; /* NULL: it belongs to none */
};

/* What a lane (gpu_lane.h) has of the driver. */
struct gpu_handles {
	void *context;
	void *stream; /* of its own: what the program runs in others is not waited for */
};

/* What a thread was before it entered a context. */
struct gpu_inside {
	int capture_mode;
};

struct gpu_api {
	const char *client; /* its name */
	const char *soname; /* the driver's library, which the program has loaded */
	/* Finds its functions; the name of one that it lacks, or NULL: all are there. */
	const char *(*load)(void *library);

	/*
	 * The allocation in which addr lies.  False: it is not memory of a device alone, or the
	 * driver cannot say, as before it was initialised.
	 */
	bool (*find)(uint64_t addr, struct gpu_range *out);
	/* Memory that alloc() made, and its number; 0: it is gone. */
	uint64_t (*id)(const void *pinned);

	/*
	 * The context for that range's bytes, held if the range has none of its own.  0 or -errno.
	 */
	int (*context)(const struct gpu_range *range, void **context);
	/* Makes it the thread's, for calls that a capture does not notice, and undoes that. */
	int (*enter)(void *context, struct gpu_inside *was);
	void (*leave)(const struct gpu_inside *was);

	/* Inside: 0 or -errno. */
	int (*open)(struct gpu_handles *h);
	int (*alloc)(size_t size, void **pinned);
	int (*make_event)(void **event);
	/* n bytes between pinned memory and the device, in the order of the stream. */
	int (*to_device)(const struct gpu_handles *h, uint64_t to, const void *from, size_t n);
	int (*from_device)(const struct gpu_handles *h, void *to, uint64_t from, size_t n);
	/* Marks what was asked for so far; wait() returns once that is done. */
	int (*mark)(const struct gpu_handles *h, void *event);
	int (*wait)(void *event);
};

extern const struct gpu_api gpu_cuda;
