// SPDX-License-Identifier: BSD-3-Clause
#include "face/look.h"

#include "base/spin.h"

enum { MANY_WINS = 8, MAX_DEBT = 256 };

uint64_t look_begins(struct look *l, uint64_t usual)
{
	if (!l->longer || !usual)
		return spin_limit_ns(usual);
	if (++l->wins > MANY_WINS)
		l->fails = 0;
	return spin_limit_ns(usual > LOOK_LONG_NS ? usual : LOOK_LONG_NS);
}

void look_failed(struct look *l)
{
	if (!l->longer)
		return;
	l->longer = false;
	l->fails = l->fails ? 2 * l->fails : 1;
	if (l->fails > MAX_DEBT)
		l->fails = MAX_DEBT;
	l->debt = l->fails;
}

void look_slept(struct look *l, uint64_t ns)
{
	if (ns > LOOK_LONG_NS)
		return;
	if (l->debt)
		l->debt--;
	else
		l->longer = true;
	l->wins = 0;
}
