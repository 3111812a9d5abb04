// SPDX-License-Identifier: BSD-3-Clause
#include "players.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "board.h"
#include "disturb.h"
#include "link.h"
#include "memory.h"
#include "rnd.h"
#include "tests/storm/world.h"
#include "words.h"

enum {
	PLAYERS = BOARD_PLAYERS,
	STRANGER = 2, /* the player that is of another fabric, if one is */
	STACK = 4 << 20,
	HEAP_BLOCKS = 64 << 20, /* larger ones are mappings of their own */
	STEP_US = 5000,
	STOP_US = 60000, /* until the next process is stopped */
	STOPPED_US = 20000,
	KILL_STEPS = 200, /* weftd is killed once in so many steps */
	DEATH_MS = 2500,  /* until the next player is killed, at most */
	/* 60 s at least: an end that misses completions says so before, and which. */
	HANG_STEPS = 12000,
};

static const struct {
	unsigned player[2];
} links[] = {{{0, 1}}, {{1, 2}}, {{2, 0}}, {{0, 0}}, {{1, 0}}, {{2, 1}}};

enum { LINKS = sizeof links / sizeof *links };

_Static_assert(sizeof links / sizeof *links <= BOARD_LINKS, "places on the board");

/* ---- a player ---- */

static void play(uint64_t seed, unsigned me, uint32_t life)
{
	struct link_part part[2 * LINKS];
	pthread_t thread[2 * LINKS];
	pthread_attr_t attr;
	unsigned n = 0;

	mallopt(M_MMAP_THRESHOLD, HEAP_BLOCKS);
	mallopt(M_TRIM_THRESHOLD, HEAP_BLOCKS);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	disturb_start(seed + life, me);
	words_make(seed, me, life);
	for (unsigned i = 0; i < LINKS; i++)
		for (unsigned side = 0; side < 2; side++) {
			if (links[i].player[side] != me)
				continue;
			part[n] = (struct link_part){i, side, links[i].player[!side], seed,
				atomic_load(&board->link[i].dead)};
			if (pthread_create(&thread[n], &attr, link_main, &part[n]))
				board_fail("pthread_create: %m");
			n++;
		}
	while (n)
		pthread_join(thread[--n], NULL);
	disturb_stop();
	words_check(me);
	_exit(0);
}

static pid_t start_player(const struct setting *s, unsigned me, uint32_t life)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	setenv("WEFT_SHARE", s->share, 1);
	if (strcmp(s->mover, "default"))
		setenv("WEFT_MOVER", s->mover, 1);
	else
		unsetenv("WEFT_MOVER");
	if (s->fabrics && me == STRANGER)
		setenv("WEFT_FABRIC", "stranger", 1);
	play(s->seed, me, life);
	_exit(0);
}

/* ---- what is done to them ---- */

struct game {
	struct rnd rnd;
	const struct setting *setting;
	pid_t pid[PLAYERS];
	uint32_t lives[PLAYERS];
	uint64_t next_stop, next_death;
	uint32_t meetings[LINKS], steps[LINKS]; /* since the link last moved */
};

static void stop_one(struct game *g)
{
	pid_t pid = g->pid[rnd_below(&g->rnd, PLAYERS)];

	if (board->without & DISTURB_STOPS || now_ns() < g->next_stop || pid <= 0)
		return;
	kill(pid, SIGSTOP);
	nap_us(rnd_below(&g->rnd, STOPPED_US));
	kill(pid, SIGCONT);
	g->next_stop = now_ns() + rnd_below(&g->rnd, STOP_US) * 1000ull;
}

static void kill_weftd(struct game *g)
{
	if (board->without & DISTURB_WEFTD || !rnd_once_in(&g->rnd, KILL_STEPS))
		return;
	world_signal_daemons(SIGKILL);
	atomic_fetch_add(&board->kills, 1);
}

static bool is_of(unsigned link, unsigned player)
{
	return links[link].player[0] == player || links[link].player[1] == player;
}

static void start(struct game *g, unsigned player)
{
	g->pid[player] = start_player(g->setting, player, ++g->lives[player]);
}

/* False: it is already. */
static bool is_to_die(unsigned player)
{
	if (atomic_exchange(&board->leaving[player], true))
		return false;
	for (unsigned i = 0; i < LINKS; i++)
		if (is_of(i, player))
			atomic_fetch_add(&board->link[i].dying, 1);
	return true;
}

bool players_leave(unsigned link, unsigned side)
{
	return is_to_die(links[link].player[side]);
}

/* Another takes its place.  What it was at is unknown: it is not asked, nor waited for. */
static void replace(struct game *g, unsigned player)
{
	memory_mop_up(g->pid[player]);
	for (unsigned i = 0; i < LINKS; i++)
		if (is_of(i, player))
			atomic_fetch_add(&board->link[i].dead, 1);
	atomic_store(&board->leaving[player], false);
	start(g, player);
	atomic_fetch_add(&board->deaths, 1);
}

static void kill_player(struct game *g)
{
	unsigned player = rnd_below(&g->rnd, PLAYERS);

	if (board->without & DISTURB_KILLS || now_ns() < g->next_death || g->pid[player] <= 0 ||
		!is_to_die(player))
		return;
	kill(g->pid[player], SIGKILL);
	waitpid(g->pid[player], NULL, 0);
	replace(g, player);
	g->next_death = now_ns() + rnd_below(&g->rnd, DEATH_MS) * 1000000ull;
}

int players_at(unsigned link, unsigned side)
{
	return link < LINKS ? (int)links[link].player[side] : -1;
}

/* ---- watching ---- */

/* Reaps players; how many are left. */
static unsigned reap(struct game *g)
{
	unsigned left = 0;
	int status;

	for (unsigned i = 0; i < PLAYERS; i++) {
		if (g->pid[i] <= 0)
			continue;
		if (waitpid(g->pid[i], &status, WNOHANG) != g->pid[i]) {
			left++;
			continue;
		}
		if (WIFEXITED(status) && WEXITSTATUS(status) == PLAYER_LEFT) {
			replace(g, i);
			atomic_fetch_add(&board->exits, 1);
			left++;
			continue;
		}
		g->pid[i] = 0;
		if (WIFSIGNALED(status))
			board_tell("a process died of signal %d", WTERMSIG(status));
		else if (WEXITSTATUS(status))
			board_tell("a process exited with %d", WEXITSTATUS(status));
	}
	return left;
}

static bool is_player(const struct game *g, pid_t pid)
{
	for (unsigned i = 0; i < PLAYERS; i++)
		if (g->pid[i] == pid)
			return true;
	return false;
}

/* Children of players that were killed, and weftds, come to us. */
static void reap_orphans(const struct game *g)
{
	siginfo_t ended = {.si_pid = 0};

	while (!waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid &&
		!is_player(g, ended.si_pid)) {
		waitpid(ended.si_pid, NULL, 0);
		ended.si_pid = 0;
	}
}

static const char *doing(struct board_link *l, unsigned end)
{
	const char *what = atomic_load(&l->doing[end]);

	return what ? what : "has not begun";
}

static void tell_standstill(const struct game *g, unsigned i)
{
	struct board_link *l = &board->link[i];

	board_tell(
		"link %u stands still in epoch %u, round %u: end 0 (process %d) %s, end 1 (process "
		"%d) %s",
		i, atomic_load(&l->epoch), atomic_load(&l->round), (int)g->pid[links[i].player[0]],
		doing(l, 0), (int)g->pid[links[i].player[1]], doing(l, 1));
}

/*
 * Steps are counted, not time: where CPUs are scarce ours become longer, too.  A round takes
 * milliseconds.
 */
static void look_for_hang(struct game *g)
{
	for (unsigned i = 0; i < LINKS; i++) {
		struct board_link *l = &board->link[i];
		const struct room *r = &l->room[atomic_load(&l->dead) % ROOMS];
		uint32_t sum = atomic_load(&r->at[0]) + atomic_load(&r->at[1]);

		if (sum != g->meetings[i])
			g->steps[i] = 0;
		g->meetings[i] = sum;
		if (g->steps[i]++ == HANG_STEPS && !l->over)
			tell_standstill(g, i);
	}
}

/* Who was the first to fail may not have written it all down yet. */
static void await_text(void)
{
	for (unsigned i = 0; i < 200 && atomic_load(&board->failed) && !atomic_load(&board->told);
		i++)
		nap_us(STEP_US);
}

static void kill_all(struct game *g)
{
	for (unsigned i = 0; i < PLAYERS; i++)
		if (g->pid[i] > 0) {
			kill(g->pid[i], SIGKILL);
			waitpid(g->pid[i], NULL, 0);
		}
}

static void disturb_until(struct game *g, uint64_t end)
{
	while (now_ns() < end && !atomic_load(&board->failed) && reap(g) == PLAYERS) {
		stop_one(g);
		kill_weftd(g);
		kill_player(g);
		reap_orphans(g);
		look_for_hang(g);
		nap_us(STEP_US);
	}
}

bool players_run(const struct setting *s, double seconds)
{
	struct game g = {.setting = s, .rnd = rnd_of(s->seed, 0, 0, 0x47414d45)};

	/* what a dead process sent may be on its way still, and is then of no life */
	board_clear(s->without | (s->fabrics ? DISTURB_KILLS | DISTURB_EXITS : 0));
	for (unsigned i = 0; s->fabrics && i < LINKS; i++)
		if (links[i].player[0] != links[i].player[1] && is_of(i, STRANGER))
			board->apart |= 1u << i;
	for (unsigned i = 0; i < PLAYERS; i++)
		start(&g, i);
	g.next_death = now_ns() + rnd_below(&g.rnd, DEATH_MS) * 1000000ull;
	disturb_until(&g, now_ns() + (uint64_t)(seconds * 1e9));
	atomic_store(&board->stop, 1);
	while (!atomic_load(&board->failed) && reap(&g)) {
		look_for_hang(&g);
		nap_us(STEP_US);
	}
	await_text();
	kill_all(&g);
	return !atomic_load(&board->failed);
}
