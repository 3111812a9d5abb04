// SPDX-License-Identifier: BSD-3-Clause
/* What user.h declares is what <scif.h> has. */
#include "scif/face/user.h"

#include "scif.h"

#define SAME(name)                                                                                 \
	_Static_assert(                                                                            \
		__builtin_types_compatible_p(__typeof__(user_##name), __typeof__(scif_##name)),    \
		#name)

SAME(open);
SAME(bind);
SAME(listen);
SAME(connect);
SAME(accept);
SAME(close);
SAME(send);
SAME(recv);
SAME(register);
SAME(unregister);
SAME(readfrom);
SAME(writeto);
SAME(vreadfrom);
SAME(vwriteto);
SAME(fence_mark);
SAME(fence_wait);
SAME(fence_signal);
SAME(get_node_ids);
SAME(pin_pages);
SAME(unpin_pages);
SAME(register_pinned_pages);
SAME(get_pages);
SAME(put_pages);
SAME(client_register);
SAME(client_unregister);
