/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A module is the shared library that it is compiled to.  Weft, and weft peercheck, call its
 * init_module() after loading it.  Parameters are read before that from the environment,
 * WEFT_PARAM_name.
 */
#pragma once

#include <linux/errno.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/version.h>
#include <sys/stat.h>

#ifndef S_IRUGO
#define S_IRUGO (S_IRUSR | S_IRGRP | S_IROTH)
#endif

struct module {
	_Atomic int refs;
};

/* One of each shared library, however many files it is made of. */
__attribute__((weak, visibility("hidden"))) struct module __this_module;

#ifndef KBUILD_MODNAME
#define KBUILD_MODNAME "peer_client"
#endif

#define THIS_MODULE                   (&__this_module)
#define MODULE_AUTHOR(text)           _Static_assert(1, "")
#define MODULE_LICENSE(text)          _Static_assert(1, "")
#define MODULE_DESCRIPTION(text)      _Static_assert(1, "")
#define MODULE_VERSION(text)          _Static_assert(1, "")
#define MODULE_ALIAS(text)            _Static_assert(1, "")
#define MODULE_IMPORT_NS(text)        _Static_assert(1, "")
#define MODULE_PARM_DESC(name, text)  _Static_assert(1, "")
#define MODULE_DEVICE_TABLE(of, name) _Static_assert(1, "")

#define module_init(fn)                                                                            \
	int init_module(void);                                                                     \
	int init_module(void)                                                                      \
	{                                                                                          \
		return fn();                                                                       \
	}                                                                                          \
	_Static_assert(1, "")

#define module_exit(fn)                                                                            \
	void cleanup_module(void);                                                                 \
	void cleanup_module(void)                                                                  \
	{                                                                                          \
		fn();                                                                              \
	}                                                                                          \
	_Static_assert(1, "")

#define module_param_named(name, value, type, mode)                                                \
	__attribute__((constructor)) static void kshim_param_of_##name(void)                       \
	{                                                                                          \
		kshim_param(#name, #type, &(value));                                               \
	}                                                                                          \
	_Static_assert(1, "")
#define module_param(name, type, mode) module_param_named(name, name, type, mode)

/* Of clients whose API is a header of their own, too. */
#ifdef PEER_MEM_GENERATION
#include <kshim_note.h>
#endif

/* A function of another module, if that is there; NULL otherwise. */
#define symbol_request(name) (__typeof__(&(name)))kshim_symbol(#name)
#define symbol_get           symbol_request
#define __symbol_get(name)   kshim_symbol(name)
#define symbol_put(name)     kshim_symbol_put(#name)
#define __symbol_put(name)   kshim_symbol_put(name)

/* A reference more, which module_put() drops; try_module_get() succeeds. */
void __module_get(struct module *m);
bool try_module_get(struct module *m);
void module_put(struct module *m);

/* What these macros call. */
void kshim_param(const char *name, const char *type, void *value);
void *kshim_symbol(const char *name);
void kshim_symbol_put(const char *name);
