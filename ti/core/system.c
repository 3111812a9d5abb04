// SPDX-License-Identifier: BSD-3-Clause
#include "ti/core/system.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/thread.h"
#include "ti/core/fork.h"

enum {
	THREADS_MAX = 256, /* more would wait in callbacks at a time */
	IDLE_MAX = 2,      /* that wait for the next job */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct job *first, **end;
	bool started, told;
	unsigned threads;
	unsigned idle;    /* threads that wait for jobs, or are on their way there */
	unsigned running; /* jobs that run and do not wait */
} sys = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.end = &sys.first,
};

static _Thread_local bool is_worker __attribute__((tls_model("initial-exec")));

/* The thread is idle and stays so until there is a job for it.  NULL: it is one too many. */
static struct job *next_job(void)
{
	struct job *job;

	while (!sys.first || sys.running) {
		if (sys.idle > IDLE_MAX) {
			sys.idle--;
			return NULL;
		}
		pthread_cond_wait(&sys.work, &sys.lock);
	}
	sys.idle--;
	job = sys.first;
	sys.first = job->next;
	if (!sys.first)
		sys.end = &sys.first;
	sys.running++;
	return job;
}

static void *worker(void *arg)
{
	struct job *job;

	(void)arg;
	is_worker = true;
	fork_thread_is_ours();
	pthread_mutex_lock(&sys.lock);
	while ((job = next_job()) != NULL) {
		pthread_mutex_unlock(&sys.lock);
		job->run(job);
		pthread_mutex_lock(&sys.lock);
		sys.running--;
		sys.idle++;
	}
	sys.threads--;
	pthread_mutex_unlock(&sys.lock);
	return NULL;
}

/* Under the lock. */
static int start_worker(void)
{
	pthread_t thread;
	int ret = thread_start(&thread, "ti-system", THREAD_CALLBACKS, worker, NULL);

	if (ret) {
		log_line(LOG_LVL_ERROR, "ti: no thread for callbacks: errno %d", ret);
		return -EAGAIN;
	}
	pthread_detach(thread);
	sys.threads++;
	sys.idle++;
	return 0;
}

/* Another thread for the jobs behind one that waits, if there may be one.  Under the lock. */
static int replace_worker(void)
{
	if (sys.idle)
		return 0;
	if (sys.threads < THREADS_MAX)
		return start_worker();
	if (!sys.told)
		log_line(LOG_LVL_WARN,
			"ti: %u callbacks wait in calls; others are called when one returns",
			sys.threads);
	sys.told = true;
	return 0;
}

int system_start(void)
{
	int ret = 0;

	pthread_mutex_lock(&sys.lock);
	if (!sys.started)
		ret = start_worker();
	if (!ret)
		sys.started = true;
	pthread_mutex_unlock(&sys.lock);
	return ret;
}

void system_post(struct job *job)
{
	job->next = NULL;
	pthread_mutex_lock(&sys.lock);
	*sys.end = job;
	sys.end = &job->next;
	pthread_cond_signal(&sys.work);
	pthread_mutex_unlock(&sys.lock);
}

int system_block(void)
{
	int ret;

	if (!is_worker)
		return 0;
	pthread_mutex_lock(&sys.lock);
	sys.running--;
	ret = replace_worker();
	pthread_cond_signal(&sys.work);
	pthread_mutex_unlock(&sys.lock);
	return ret;
}

void system_unblock(void)
{
	if (!is_worker)
		return;
	pthread_mutex_lock(&sys.lock);
	sys.running++;
	pthread_mutex_unlock(&sys.lock);
}

void system_forked(void)
{
	sys.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	sys.work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	sys.first = NULL;
	sys.end = &sys.first;
	sys.started = sys.told = false;
	sys.threads = sys.idle = sys.running = 0;
	is_worker = false;
}
