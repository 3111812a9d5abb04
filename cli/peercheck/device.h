/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The device that a client is for, by what its file names; NULL: it names none that is known. */
const char *device_of(const char *client);
