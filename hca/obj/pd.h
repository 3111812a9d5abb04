/* SPDX-License-Identifier: BSD-3-Clause */
/* A protection domain of this process (hca/api/hca.h has the opaque ones). */
#pragma once

#include <stdint.h>

#include "base/lock.h"

struct hca_mw;
struct hca_qp;
struct hca_srq;

struct hca_pd {
	uint32_t epoch;
	uint32_t handle; /* also the pd number in MR and QP entries */
	_Atomic uint32_t users;
	struct lock lock;   /* of the lists */
	struct hca_qp *qps; /* whose receives may still have to be copied out */
	struct hca_srq *srqs;
	struct hca_mw *mws;
	struct hca_pd *next;  /* of the process, so that a handle can be found */
	struct hca_pd **link; /* what points to us */
};
