/* SPDX-License-Identifier: Apache-2.0 */
/* rec2idx: writes the index of a RecordIO file. Runs without MPI. */
#include <muster/records.h>

#include "../lib/arguments.h"

struct values {
	bool help;
};

static const struct mu_option table[] = {
	{.name = "help",
	 .type = MU_OPTION_FLAG,
	 .offset = offsetof(struct values, help),
	 .group = "Other",
	 .help = "this text"},
};

int main(int argc, char **argv)
{
	enum mu_status st = MU_OK;
	struct values values;
	struct data_command command = {
		.tool = "rec2idx",
		.table = table,
		.n_options = sizeof table / sizeof *table,
		.values = &values,
		.usage = "RECORD INDEX\n\n"
			 "Find the records of the RecordIO file RECORD and write where they begin "
			 "to INDEX: lines\n\"key <tab> byte\" with keys 0, 1, 2, ...\n",
		.n_words = 2,
	};
	bool done;
	size_t n;

	MU_TRY(data_command_parse(&command, argc, argv, &done));
	if (done)
		goto out;
	MU_TRY(data_command_watch(&command, command.words[1]));
	MU_TRY(mu_recordio_index(command.words[0], command.words[1], &n));
	printf("rec2idx: %zu record%s of %s in %s\n", n, MU_S(n),
	       mu_shown(command.words[0]), mu_shown(command.words[1]));
out:
	return data_command_end(&command, st);
}
