/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Included by base/atomic.h when WEFT_MODEL is defined: puts the model explorer in the place of
 * the C11 operations that the protocols use.  Each one becomes a scheduling point (mc.h).
 */
#pragma once

#include "mc_ops.h"

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_thread_fence

/* The value type of an atomic object, without its qualifier. */
#define MC_VALUE(p) __typeof__((void)0, *(p))

#define atomic_load_explicit(p, mo)                                                                \
	((MC_VALUE(p))mc_load((void *)(p), sizeof(*(p)), (mo), __func__))

#define atomic_store_explicit(p, v, mo)                                                            \
	mc_store((void *)(p), sizeof(*(p)), (MC_VALUE(p))(v), (mo), __func__)

#define MC_RMW(op, p, v)                                                                           \
	({                                                                                         \
		MC_VALUE(p)                                                                        \
		mc_v_ = mc_rmw(op, (void *)(p), sizeof(*(p)), (MC_VALUE(p))(v), __func__);         \
		mc_v_;                                                                             \
	})

#define atomic_exchange_explicit(p, v, mo)  MC_RMW(MC_OP_XCHG, p, v)
#define atomic_fetch_add_explicit(p, v, mo) MC_RMW(MC_OP_ADD, p, v)
#define atomic_fetch_or_explicit(p, v, mo)  MC_RMW(MC_OP_OR, p, v)
#define atomic_fetch_and_explicit(p, v, mo) MC_RMW(MC_OP_AND, p, v)

#define MC_CAS(p, e, d)                                                                            \
	({                                                                                         \
		__auto_type mc_e_ = (e);                                                           \
		uint64_t mc_x_ = *mc_e_;                                                           \
		_Bool mc_ok_ =                                                                     \
			mc_cas((void *)(p), sizeof(*(p)), &mc_x_, (MC_VALUE(p))(d), __func__);     \
		*mc_e_ = mc_x_;                                                                    \
		mc_ok_;                                                                            \
	})

#define atomic_compare_exchange_strong_explicit(p, e, d, s, f)                                     \
	((void)(s), (void)(f), MC_CAS(p, e, d))
#define atomic_compare_exchange_weak_explicit(p, e, d, s, f) ((void)(s), (void)(f), MC_CAS(p, e, d))

#define atomic_thread_fence(mo)                              mc_fence((mo), __func__)
