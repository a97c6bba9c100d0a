/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the library name settings; the user of the trainer reads the options instead. */
#include "conf.h"

#include <muster/base.h>

/* "(setting a, setting b)" of a network: "(--a, --b)". */
static const struct {
	const char *setting, *option;
} settings[] = {
	{"(setting ", "(--"},
	{", setting ", ", --"},
	{"batch size", "--batch-size"},
	{"communication timeout", "--comm-timeout"},
	{"data train", "--data-train"},
	{"halt before", "--halt-before"},
	{"image shape", "--image-shape"},
	{"its last checkpoint", "its last checkpoint (--resume auto)"},
	{"label columns", "--label-columns"},
	{"label train", "--label-train"},
	{"label val", "--label-val"},
	{"num_layers", "--num-layers"},
	{"number of classes", "--num-classes"},
	{"prefetch buffer", "--prefetch-buffer"},
	{"sequence length", "--seq-len"},
	{"skip bad records", "--skip-bad-records"},
	{"take network", "use --network"},
	{"set-up timeout", "--setup-timeout"},
	{"untied weights", "weights of their own (--tie-weights 0)"},
};

/* "setting NAME" of a reader: "--NAME". */
static void name_settings(const struct mu_option *rows)
{
	char setting[64], option[64];

	for (; rows && rows->name; rows++) {
		snprintf(setting, sizeof setting, "setting %s", rows->name);
		snprintf(option, sizeof option, "--%s", rows->name);
		mu_trace_replace(setting, option);
	}
}

void mu_conf_name_options(void)
{
	const struct mu_reader *reader;

	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
		mu_trace_replace(settings[i].setting, settings[i].option);
	for (size_t i = 0; (reader = mu_input_reader_at(i)); i++)
		name_settings(reader->settings);
}
