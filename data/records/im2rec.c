/* SPDX-License-Identifier: Apache-2.0 */
/* im2rec: packs images into a RecordIO or HDF5 file. im2rec.h says how. Runs without MPI. */
#include "im2rec.h"

#include <string.h>

#include "../lib/arguments.h"

/* What options are that are not given. */
#define QUALITY 95
#define COLOR 1
#define ENCODING ".jpg"
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

#define AT(member) .offset = offsetof(struct im2rec_values, member)
#define FLAG(name_, member, group_, help_) \
	{ \
		.name = name_, .type = MU_OPTION_FLAG, AT(member), .group = group_, .help = help_ \
	}
#define NUMBER(name_, member, initial_, min_, max_, group_, help_) \
	{ \
		.name = name_, .type = MU_OPTION_INT, AT(member), .initial = initial_, \
		.min = min_, .max = max_, .group = group_, .help = help_ \
	}
#define SWITCH(name_, member, initial_, group_, help_) \
	{ \
		.name = name_, .type = MU_OPTION_INT, AT(member), .initial = initial_, .max = 1, \
		.toggle = true, .group = group_, .help = help_ \
	}
#define SHARE(name_, member, initial_, help_) \
	{ \
		.name = name_, .type = MU_OPTION_REAL, AT(member), .initial = initial_, .min = 0, \
		.max = 1, .group = "Lists", .help = help_ \
	}
#define WORD(name_, member, initial_, choices_, group_, help_) \
	{ \
		.name = name_, .type = MU_OPTION_STRING, AT(member), .initial = initial_, \
		.choices = choices_, .group = group_, .help = help_ \
	}

static const struct mu_option table[] = {
	FLAG("list", list, "Lists", "make lists, PREFIX.lst, instead of packing"),
	WORD("exts", exts, ".jpeg,.jpg,.png", NULL, "Lists", "LIST  ends of the names of images"),
	FLAG("recursive", recursive, "Lists",
	     "look into folders; each folder with images is a class, in the order of their names. "
	     "Without, all labels are 0"),
	SWITCH("shuffle", shuffle, "1", "Lists", "mix the order of a list"),
	NUMBER("seed", seed, "100", 0, 2147483647, "Lists", "N  of the order"),
	NUMBER("chunks", chunks, "1", 1, 1e6, "Lists", "N  cut the list into N, PREFIX_0.lst, ..."),
	SHARE("train-ratio", train_ratio, "1",
	      "R  share for PREFIX_train.lst; 1: there is PREFIX.lst only"),
	SHARE("test-ratio", test_ratio, "0",
	      "R  share for PREFIX_test.lst; what is left goes to PREFIX_val.lst"),
	WORD("format", format, "rec", "rec|h5", "Packing",
	     "KIND  rec: RecordIO with its index; h5: an HDF5 data file"),
	FLAG("pass-through", pass_through, "Packing", "pack the files as they are"),
	NUMBER("resize", resize, "0", 0, DATA_SIDE_MAX, "Packing",
	       "N  scale the shorter edge to N pixels; 0: leave it"),
	FLAG("center-crop", center_crop, "Packing", "cut the middle square out, before --resize"),
	WORD("encoding", encoding, ENCODING, ".jpg|.png", "Packing", "KIND  .jpg or .png"),
	NUMBER("quality", quality, TEXT(QUALITY), 1, 100, "Packing", "N  of .jpg"),
	NUMBER("color", color, TEXT(COLOR), -1, 1, "Packing",
	       "1|0|-1  colour images, grey ones, or grey where an image is grey"),
	FLAG("pack-label", pack_label, "Packing",
	     "pack all labels of a line; without, the first one"),
	NUMBER("num-thread", num_thread, "1", 1, 1024, "Packing", "N  threads that make images"),
	FLAG("skip-bad", skip_bad, "Packing",
	     "leave images out that cannot be read, and count them; without, the first one is an "
	     "error"),
	FLAG("help", help, "Other", "this text"),
};

static const char usage[] = "PREFIX ROOT\n\n"
			    "Two steps. With --list: find the images under the folder ROOT and "
			    "write their names and labels\n"
			    "to PREFIX.lst, lines \"number <tab> label <tab> path\". Without: pack "
			    "the images of each list\n"
			    "PREFIX*.lst, whose paths begin at ROOT, into PREFIX*.rec and "
			    "PREFIX*.idx, or PREFIX*.h5; where each\n"
			    "class has a folder of its own, PREFIX*.classes (or the .h5) holds "
			    "their names. A file\n"
			    "depends on the images and the options, not on --num-thread.\n\n"
			    "Photographs (JPEG) are turned upright by the orientation that their "
			    "cameras noted (EXIF), before\n"
			    "anything else; what is packed notes none. --pass-through leaves them "
			    "and the note as they are.\n";

static const struct mu_option_rule void_rows[] = {
	{.option = "format|pass-through|resize|center-crop|encoding|quality|color|pack-label|"
		   "num-thread|skip-bad",
	 .relation = MU_OPTION_EXCLUDES,
	 .other = "list",
	 .why = "no images are packed"},
	{.option = "exts|recursive|shuffle|seed|chunks|train-ratio|test-ratio",
	 .relation = MU_OPTION_NEEDS,
	 .other = "list",
	 .why = "the images are those of the lists that are there, in their order"},
	{.option = "seed",
	 .relation = MU_OPTION_EXCLUDES,
	 .other = "shuffle",
	 .other_values = "0",
	 .why = "a list in order has nothing random"},
	{.option = "quality",
	 .relation = MU_OPTION_EXCLUDES,
	 .other = "encoding",
	 .other_values = ".png",
	 .why = "it is of .jpg"},
};

static const struct mu_option_rules voids = {.of = void_rows,
					     .n = sizeof void_rows / sizeof *void_rows};

static enum mu_status check_values(const struct im2rec_values *v)
{
	enum mu_status st = MU_OK;

	if (v->train_ratio + v->test_ratio > 1)
		MU_FAIL(MU_ERR_USAGE,
			"--train-ratio %g and --test-ratio %g are more than 1 together",
			v->train_ratio, v->test_ratio);
	if (v->pass_through && (v->resize || v->center_crop || v->color != COLOR ||
				v->quality != QUALITY || strcmp(v->encoding, ENCODING) != 0))
		MU_FAIL(MU_ERR_USAGE,
			"--pass-through packs files as they are: leave --resize, --center-crop, "
			"--color, --encoding and --quality out");
out:
	return st;
}

int main(int argc, char **argv)
{
	enum mu_status st = MU_OK;
	struct im2rec_values v;
	struct data_command command = {
		.tool = "im2rec",
		.table = table,
		.n_options = sizeof table / sizeof *table,
		.voids = &voids,
		.values = &v,
		.usage = usage,
		.n_words = 2,
	};
	bool done;

	MU_TRY(data_command_parse(&command, argc, argv, &done));
	if (done)
		goto out;
	MU_TRY(check_values(&v));
	MU_TRY(data_command_watch(&command, command.words[0]));
	if (v.list)
		MU_TRY(im2rec_make_lists(&v, command.words[0], command.words[1]));
	else
		MU_TRY(im2rec_pack_lists(&v, command.words[0], command.words[1]));
out:
	return data_command_end(&command, st);
}
