// SPDX-License-Identifier: BSD-3-Clause
/* Modules, their parameters and symbols; the log; threads as tasks. */
#include "kshim/module.h"

#include <dlfcn.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "kshim/hook.h"

static _Atomic long references;

/* ---- modules ---- */

long module_references(void)
{
	return atomic_load_explicit(&references, memory_order_relaxed);
}

static void refer(struct module *m, int n)
{
	atomic_fetch_add_explicit(&m->refs, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&references, n, memory_order_relaxed);
}

KSHIM_EXPORT void __module_get(struct module *m)
{
	refer(m, 1);
}

KSHIM_EXPORT bool try_module_get(struct module *m)
{
	const bool fails = hook_before("try_module_get");

	if (!fails)
		refer(m, 1);
	hook_after("try_module_get", 0);
	return !fails;
}

KSHIM_EXPORT void module_put(struct module *m)
{
	if (atomic_load_explicit(&m->refs, memory_order_relaxed) < 1)
		hook_wrong(KSHIM_STALE, "module_put without a reference");
	else
		refer(m, -1);
}

/* ---- parameters and symbols ---- */

static void set_param(const char *type, void *value, const char *text)
{
	if (strcmp(type, "bool") == 0)
		*(bool *)value = strchr("1yY", *text) && *text;
	else if (strcmp(type, "charp") == 0)
		*(const char **)value = text;
	else if (strstr(type, "long"))
		*(long *)value = strtol(text, NULL, 0);
	else
		*(int *)value = (int)strtol(text, NULL, 0);
}

KSHIM_EXPORT void kshim_param(const char *name, const char *type, void *value)
{
	char variable[96];
	const char *text;

	snprintf(variable, sizeof variable, "WEFT_PARAM_%s", name);
	text = secure_getenv(variable);
	if (text)
		set_param(type, value, text);
}

KSHIM_EXPORT void *kshim_symbol(const char *name)
{
	return hook_before(name) ? (hook_after(name, 0), NULL)
				 : (hook_after(name, 0), dlsym(RTLD_DEFAULT, name));
}

KSHIM_EXPORT void kshim_symbol_put(const char *name)
{
	(void)name;
}

/* ---- the log ---- */

static enum log_level level_of(const char *fmt)
{
	if (fmt[0] != KERN_SOH[0] || !fmt[1] || fmt[1] == '4')
		return LOG_LVL_WARN;
	return fmt[1] < '4' ? LOG_LVL_ERROR : fmt[1] < '7' ? LOG_LVL_INFO : LOG_LVL_DEBUG;
}

KSHIM_EXPORT int printk(const char *fmt, ...)
{
	char text[512];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof text, fmt[0] == KERN_SOH[0] && fmt[1] ? fmt + 2 : fmt, args);
	va_end(args);
	text[strcspn(text, "\n")] = '\0';
	log_line(level_of(fmt), "peer client: %s", text);
	return n;
}

KSHIM_EXPORT bool kshim_warn_on(bool wrong, const char *what, const char *file, int line)
{
	if (wrong)
		log_line(LOG_LVL_WARN, "peer client: WARN_ON(%s) at %s:%d", what, file, line);
	return wrong;
}

KSHIM_EXPORT void kshim_bug_on(bool wrong, const char *what, const char *file, int line)
{
	if (!wrong)
		return;
	log_line(LOG_LVL_FATAL, "peer client: BUG_ON(%s) at %s:%d", what, file, line);
	abort();
}

/* ---- tasks ---- */

static struct mm_struct memory = {.mmap_sem = {PTHREAD_RWLOCK_INITIALIZER}};

KSHIM_EXPORT struct task_struct *kshim_current(void)
{
	static __thread struct task_struct task;

	task.pid = gettid();
	task.tgid = getpid();
	task.mm = &memory;
	task.group_leader = &task;
	return &task;
}

KSHIM_EXPORT struct pid *get_task_pid(struct task_struct *task, enum pid_type type)
{
	static struct pid own;

	(void)task;
	(void)type;
	own.nr = getpid();
	return &own;
}

KSHIM_EXPORT void schedule(void)
{
	sched_yield();
}

KSHIM_EXPORT void usleep_range(unsigned long least, unsigned long most);
KSHIM_EXPORT void usleep_range(unsigned long least, unsigned long most)
{
	(void)most;
	usleep((useconds_t)least);
}

KSHIM_EXPORT void msleep(unsigned int ms);
KSHIM_EXPORT void msleep(unsigned int ms)
{
	usleep(ms * 1000);
}

/* ---- the program's memory ---- */

static unsigned long copy(void *to, const void *from, unsigned long n, bool write)
{
	const struct iovec mine = {write ? (void *)from : to, n};
	const struct iovec theirs = {write ? to : (void *)from, n};
	ssize_t done = write ? process_vm_writev(getpid(), &mine, 1, &theirs, 1, 0)
			     : process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0);

	return done < 0 ? n : n - (unsigned long)done;
}

KSHIM_EXPORT unsigned long copy_to_user(void *to, const void *from, unsigned long n)
{
	return copy(to, from, n, true);
}

KSHIM_EXPORT unsigned long copy_from_user(void *to, const void *from, unsigned long n)
{
	return copy(to, from, n, false);
}
