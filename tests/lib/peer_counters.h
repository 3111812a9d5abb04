/* SPDX-License-Identifier: BSD-3-Clause */
/* What weft status counts of peer clients. */
#pragma once

/* That counter of the client with that name, of all processes; -1: there is no such client. */
long peer_counter(const char *client, const char *counter);
