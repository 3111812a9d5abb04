/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fork with pages that stay in the arena: the child copies them out, and the parent, who could
 * take them back and empty the arena meanwhile, waits for that.  For the handlers of fork alone,
 * which one thread at a time is in.
 */
#pragma once

/* Before such a fork.  Without a descriptor left, nobody waits. */
void share_child_expect(void);

/* The child: it needs the arena no more.  Nothing if none was expected. */
void share_child_has_copied(void);

/*
 * The parent: until the child has copied or is gone; at most some seconds, for another handler of
 * the program's may keep the child.  Nothing if none was expected.
 */
void share_child_await(void);
