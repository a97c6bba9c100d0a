/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options. Where MXNet's fit.py has an option, name, default and meaning are the same.
 */
#include <muster/base.h>

#include "options.h"

#define ROW(name_, type_, member) \
	.name = name_, .type = MU_OPTION_##type_, .offset = offsetof(struct conf, member)
#define FLAG(name_, member) ROW(name_, FLAG, member)
#define INT(name_, member)  ROW(name_, INT, member)
#define SWITCH(name_, member) INT(name_, member), .toggle = true
#define REAL(name_, member) ROW(name_, REAL, member)
#define TEXT(name_, member) ROW(name_, STRING, member)
#define WORD(name_, member) ROW(name_, WORD, member)
#define RANGE(min_, max_)    .min = min_, .max = max_
#define ADVANCED            .advanced = true
#define EXPERT              .expert = true
#define TRAINS              .trains = true
#define NOW(text)           .now = text
#define SILENT              .silent = true
#define AUTO                .automatic = true /* at its default */
#define LIST(list)	    .words = list, .n_words = sizeof list / sizeof *list
#define SPELLINGS(...) \
	.spellings = (const struct mu_option_spelling[]){__VA_ARGS__, {.word = NULL}}
#define SAME(word_, value_) {.word = word_, .value = value_}
#define WHOLE 2147483647.0

static const char model[] = "model", job[] = "job and stores", rule[] = "optimiser",
		  data[] = "data", logs[] = "log and files", about[] = "about",
		  one_rule[] = "settings of single optimisers", experts[] = "for experts";

const struct mu_option mu_conf_options[] = {
#include "rows/model.def"
#include "rows/data.def"
#include "rows/optimiser.def"
#include "rows/job.def"
#include "rows/files.def"
};

const size_t mu_conf_n_options = sizeof mu_conf_options / sizeof *mu_conf_options;
