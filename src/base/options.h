/* SPDX-License-Identifier: Apache-2.0 */
/* Names of options as users type them. */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <muster/base.h>

/* A switch: --name and --no-name. */
bool mu_option_is_switch(const struct mu_option *option);
/* Its choices, "a|b|c"; NULL: any text. */
const char *mu_option_choices(const struct mu_option *option);
/* The index of the word of a WORD; n_words: there is none. */
size_t mu_option_word(const struct mu_option *option, const char *text);

/* The same word, but for its case and '-' for '_'? */
bool mu_option_same(const char *word, const char *typed);
/* MU_ERR_USAGE for "-x" that is no option. */
enum mu_status mu_options_refuse_letter(const struct mu_options *o, const char *typed);

/* What is written today in place of an old name with this value. */
void mu_option_now(const struct mu_option *option, const char *value, char *text, size_t nbytes);

/* What a name means; negated: it is --no-NAME of a switch. */
struct mu_option_found {
	const struct mu_option *option;
	bool negated;
};

/* name: without dashes; a whole name, an alias, or the beginning of one of them. */
enum mu_status mu_options_find(const struct mu_options *o, const char *name,
			       struct mu_option_found *found);

#endif
