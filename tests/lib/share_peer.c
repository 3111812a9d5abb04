// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/share_peer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/check.h"
#include "tests/lib/far_end.h"
#include "tests/lib/pattern.h"

/* What the peer is asked to do. */
enum what { MAP, UNMAP, FILL, SUM };

struct order {
	enum what what;
	struct weft_share_handle handle;
	uint64_t offset;
	size_t length;
	int prot, flags;
	uint8_t *at;
	uint8_t value;
};

struct answer {
	int error;
	uint8_t *at;
	bool all; /* SUM: every byte is the order's value */
};

static void *open_device(int fd, void *arg)
{
	(void)fd;
	(void)arg;
	return vp_open();
}

static void obey(void *ctx, int fd, const void *order, void *answer)
{
	const struct order *o = order;
	struct answer *a = answer;

	(void)fd;
	a->at = o->at;
	switch (o->what) {
	case MAP:
		a->at = weft_share_map(
			ctx, &o->handle, o->offset, o->length, o->prot, o->flags, o->at);
		a->error = a->at ? 0 : errno;
		break;
	case UNMAP:
		a->error = weft_share_unmap(o->at, o->length);
		break;
	case FILL:
		memset(o->at, o->value, o->length);
		break;
	case SUM:
		a->all = pattern_all(o->at, o->length, o->value);
	}
}

static const struct far_kind mapper = {
	.order = sizeof(struct order),
	.answer = sizeof(struct answer),
	.begin = open_device,
	.obey = obey,
};

static struct answer ask(const struct vp_child *c, struct order o)
{
	struct answer a;

	far_ask(c, &mapper, &o, &a);
	return a;
}

uint8_t *share_peer_maps(
	const struct vp_child *c, const struct weft_share_handle *h, uint64_t offset, size_t length)
{
	struct answer a = ask(c, (struct order){.what = MAP,
					 .handle = *h,
					 .offset = offset,
					 .length = length,
					 .prot = PROT_READ | PROT_WRITE});

	CHECK_EQ(a.error, 0);
	return a.at;
}

int share_peer_error(const struct vp_child *c, const struct weft_share_handle *h, uint64_t offset,
	size_t length, int prot)
{
	return ask(c, (struct order){.what = MAP,
			      .handle = *h,
			      .offset = offset,
			      .length = length,
			      .prot = prot})
		.error;
}

void share_peer_fills(const struct vp_child *c, uint8_t *at, size_t length, uint8_t value)
{
	ask(c, (struct order){.what = FILL, .at = at, .length = length, .value = value});
}

bool share_peer_sees(const struct vp_child *c, uint8_t *at, size_t length, uint8_t value)
{
	return ask(c, (struct order){.what = SUM, .at = at, .length = length, .value = value}).all;
}

int share_peer_unmaps(const struct vp_child *c, uint8_t *at, size_t length)
{
	return ask(c, (struct order){.what = UNMAP, .at = at, .length = length}).error;
}

struct vp_child share_peer(void)
{
	return far_start(&mapper, NULL);
}

void share_peer_ends(struct vp_child *c)
{
	far_end(c);
}

uint8_t *share_peer_places(const struct vp_child *c, const struct weft_share_handle *h,
	uint64_t offset, size_t length, int flags, uint8_t *at, int *error)
{
	struct answer a = ask(c, (struct order){.what = MAP,
					 .handle = *h,
					 .offset = offset,
					 .length = length,
					 .prot = PROT_READ | PROT_WRITE,
					 .flags = flags,
					 .at = at});

	*error = a.error;
	return a.at;
}
