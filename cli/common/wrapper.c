// SPDX-License-Identifier: BSD-3-Clause
#include "cli/common/wrapper.h"

#include <stddef.h>
#include <string.h>

/* Programs that start others in an environment of their own. */
static const struct {
	const char *name;
	bool login; /* only with an option that makes it a login */
} droppers[] = {
	{"sudo", false},
	{"doas", false},
	{"pkexec", false},
	{"su", true},
	{"runuser", true},
	{"systemd-run", false},
	{"ssh", false},
	{"docker", false},
	{"podman", false},
};

static bool is_login(char **cmd)
{
	for (char **w = cmd + 1; *w; w++)
		if (!strcmp(*w, "-") || !strcmp(*w, "-l") || !strcmp(*w, "--login"))
			return true;
	return false;
}

/* ---- env(1) ---- */

/* Its options and assignments so far. */
struct env_words {
	bool empty; /* -i */
	bool taken; /* -u LD_LIBRARY_PATH */
	bool given; /* LD_LIBRARY_PATH=... */
	char **at;  /* what is read next */
};

/* Words of -S in front of those that are left; quotes are not looked at. */
static void split(struct env_words *e, const char *string, struct wrapper *w)
{
	char *save = NULL, **behind = e->at;
	int n = 0;

	strncpy(w->text, string, sizeof w->text - 1);
	for (char *word = strtok_r(w->text, " \t", &save); word && n < WRAPPER_WORDS - 1;
		word = strtok_r(NULL, " \t", &save))
		w->words[n++] = word;
	while (*behind && n < WRAPPER_WORDS - 1)
		w->words[n++] = *behind++;
	w->words[n] = NULL;
	e->at = w->words;
}

/* What option letter says, whose value is value, or else the next word. */
static void take_valued(struct env_words *e, char letter, const char *value, struct wrapper *w)
{
	if (!value && *e->at)
		value = *e->at++;
	if (!value)
		return;
	if (letter == 'u')
		e->taken |= !strcmp(value, "LD_LIBRARY_PATH");
	else if (letter == 'S' && !w->words[0]) /* not within itself */
		split(e, value, w);
}

static void take_letters(struct env_words *e, const char *letters, struct wrapper *w)
{
	for (; *letters; letters++) {
		if (strchr("uCS", *letters)) {
			take_valued(e, *letters, letters[1] ? letters + 1 : NULL, w);
			return;
		}
		e->empty |= *letters == 'i';
	}
}

static void take_long(struct env_words *e, const char *name, struct wrapper *w)
{
	const char *equals = strchr(name, '=');

	if (!strcmp(name, "ignore-environment"))
		e->empty = true;
	else if (!strncmp(name, "unset", 5))
		take_valued(e, 'u', equals ? equals + 1 : NULL, w);
	else if (!strncmp(name, "chdir", 5))
		take_valued(e, 'C', equals ? equals + 1 : NULL, w);
	else if (!strncmp(name, "split-string", 12))
		take_valued(e, 'S', equals ? equals + 1 : NULL, w);
}

static void look_at_env(char **cmd, struct wrapper *w)
{
	struct env_words e = {.at = cmd + 1};

	while (*e.at && **e.at == '-') {
		const char *word = *e.at++;

		if (!strcmp(word, "--"))
			break;
		if (!word[1])
			e.empty = true;
		else if (word[1] == '-')
			take_long(&e, word + 2, w);
		else
			take_letters(&e, word + 1, w);
	}
	for (; *e.at && strchr(*e.at, '='); e.at++)
		e.given |= !strncmp(*e.at, "LD_LIBRARY_PATH=", sizeof "LD_LIBRARY_PATH");
	if ((e.empty || e.taken) && !e.given)
		w->name = e.empty ? "env -i" : "env -u";
	else if (*e.at)
		w->inner = e.at;
}

void wrapper_look(char **cmd, struct wrapper *w)
{
	const char *name = basename(cmd[0]);

	memset(w, 0, sizeof *w);
	if (!strcmp(name, "env"))
		look_at_env(cmd, w);
	for (size_t i = 0; i < sizeof droppers / sizeof *droppers; i++)
		if (!strcmp(name, droppers[i].name) && (!droppers[i].login || is_login(cmd)))
			w->name = droppers[i].name;
}
