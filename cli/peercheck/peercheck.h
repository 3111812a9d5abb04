/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* weft peercheck: runs a peer memory client through every rule of the API. */
int cmd_peercheck(int argc, char **argv);
