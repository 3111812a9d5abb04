/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of librpma to whoever rpma_log_set_function() named. */
#pragma once

#include "rpma/rpma.h"

/* Passes one message on if the main threshold lets its level through; keeps errno.  printf style.
 */
void log_message(enum rpma_log_level level, const char *file, int line, const char *function,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#define LOG_ERROR(...) log_message(RPMA_LOG_LEVEL_ERROR, __FILE__, __LINE__, __func__, __VA_ARGS__)
#define LOG_WARNING(...)                                                                           \
	log_message(RPMA_LOG_LEVEL_WARNING, __FILE__, __LINE__, __func__, __VA_ARGS__)
#define LOG_NOTICE(...)                                                                            \
	log_message(RPMA_LOG_LEVEL_NOTICE, __FILE__, __LINE__, __func__, __VA_ARGS__)

/* RPMA_E_PROVIDER, after a message that `call` failed with that errno. */
#define PROVIDER_FAILED(call, err) log_provider(__FILE__, __LINE__, __func__, call, err)
int log_provider(const char *file, int line, const char *function, const char *call, int err);
