// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/smi.h"

enum { STATUS = 4, RETURNING = 0x80, DR_SLID = 32, DR_DLID = 34 };

static uint16_t load16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

static struct smi_step drop(void)
{
	return (struct smi_step){.where = SMI_DROP};
}

static struct smi_step out_by(uint8_t port)
{
	return (struct smi_step){.where = SMI_PORT, .port = port};
}

/* The directed part is over; lid: where a combined route goes on. */
static struct smi_step end_at(uint16_t lid, bool may_route)
{
	if (lid == LID_PERMISSIVE)
		return (struct smi_step){.where = SMI_HERE};
	return may_route ? (struct smi_step){.where = SMI_LID, .lid = lid} : drop();
}

static struct smi_step request(uint8_t *mad, bool is_switch, uint8_t in, bool own)
{
	uint8_t cnt = mad[SMP_HOP_CNT], ptr = mad[SMP_HOP_PTR];
	uint8_t *path = mad + SMP_INITIAL_PATH, *back = mad + SMP_RETURN_PATH;

	if (!ptr && cnt) {
		if (!is_switch && (!own || path[1] != in))
			return drop();
		mad[SMP_HOP_PTR] = 1;
		return out_by(path[1]);
	}
	if (ptr == cnt + 1)
		return (struct smi_step){.where = SMI_HERE};
	if (ptr > cnt || (ptr < cnt && !is_switch))
		return drop();
	mad[SMP_HOP_PTR]++;
	if (ptr)
		back[ptr] = in;
	return ptr < cnt ? out_by(path[ptr + 1]) : end_at(load16(mad + DR_DLID), is_switch);
}

static struct smi_step response(uint8_t *mad, bool is_switch, uint8_t in, bool own)
{
	uint8_t cnt = mad[SMP_HOP_CNT], ptr = mad[SMP_HOP_PTR];
	const uint8_t *back = mad + SMP_RETURN_PATH;

	if (!ptr)
		return (struct smi_step){.where = SMI_HERE};
	if (ptr > cnt + 1)
		return drop();
	mad[SMP_HOP_PTR]--;
	if (ptr == 1)
		return end_at(load16(mad + DR_SLID), is_switch);
	if (!is_switch && (!own || back[ptr - 1] != in))
		return drop();
	return out_by(back[ptr - 1]);
}

struct smi_step smi_step(uint8_t mad[MAD_SIZE], bool is_switch, uint8_t in, bool own)
{
	if (mad[SMP_HOP_CNT] > SMP_HOPS)
		return drop();
	return mad[STATUS] & RETURNING ? response(mad, is_switch, in, own)
				       : request(mad, is_switch, in, own);
}

bool smi_begins_directed(const uint8_t mad[MAD_SIZE])
{
	return load16(mad + (mad[STATUS] & RETURNING ? DR_DLID : DR_SLID)) == LID_PERMISSIVE;
}
