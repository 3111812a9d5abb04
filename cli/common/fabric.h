/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <argp.h>

/* Option --fabric NAME alone, for commands that ask weftd; *input: const char * of the name. */
extern const struct argp cli_fabric_argp;

/* The same for commands that take arguments, too. */
extern const struct argp cli_fabric_option_argp;

/* The fabric's name for messages: the given one, $WEFT_FABRIC, or "default". */
const char *cli_fabric_name(const char *given);
