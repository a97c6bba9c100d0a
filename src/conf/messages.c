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
	{"max_area", "--max-random-area"},
	{"max_aspect", "--max-random-aspect-ratio"},
	{"max_crop", "--max-crop-size"},
	{"max_scale", "--max-random-scale"},
	{"min_area", "--min-random-area"},
	{"min_aspect", "--min-random-aspect-ratio"},
	{"min_crop", "--min-crop-size"},
	{"min_scale", "--min-random-scale"},
	{"num_layers", "--num-layers"},
	{"number of classes", "--num-classes"},
	{"prefetch buffer", "--prefetch-buffer"},
	{"random_crop", "--random-crop"},
	{"random_resized_crop", "--random-resized-crop"},
	{"sequence length", "--seq-len"},
	{"skip bad records", "--skip-bad-records"},
	{"take network", "use --network"},
	{"set-up timeout", "--setup-timeout"},
	{"untied weights", "weights of their own (--tie-weights 0)"},
};

void mu_conf_name_options(void)
{
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
		mu_trace_replace(settings[i].setting, settings[i].option);
}
