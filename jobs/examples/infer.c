/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference from C: the class of every image of an IDX file, and its probability.
 *
 *	mpicc $(pkg-config --cflags muster) infer.c $(pkg-config --libs muster) -o infer
 *	./infer P-0010.h5 t10k-images-idx3-ubyte
 *
 * The checkpoint names its network; a file of arrays alone needs the name: infer FILE IMAGES lenet.
 */
#include <stdlib.h>
#include <string.h>

#include <muster/storage.h>
#include <muster/train.h>

enum { BATCH = 50, THREADS = 1 };

/* Up to BATCH images; pixels are what training saw: byte / 255. */
static enum mu_status classify(struct mu_plan *plan, const uint8_t *bytes, size_t n, size_t size)
{
	enum mu_status st = MU_OK;
	const size_t classes = mu_plan_probabilities_shape(plan)->dims[1];
	float *input = mu_plan_input(plan);
	const float *p;

	for (size_t i = 0; i < n * size; i++)
		input[i] = (float)bytes[i] / 255;
	for (size_t l = 0; l < mu_plan_layers(plan); l++)
		MU_TRY(mu_plan_forward(plan, l));
	p = mu_plan_probabilities(plan);
	for (size_t i = 0; i < n; i++, p += classes) {
		size_t best = 0;

		for (size_t c = 1; c < classes; c++)
			best = p[c] > p[best] ? c : best;
		printf("%zu %.6f\n", best, (double)p[best]);
	}
out:
	return st;
}

/* What a file says of a model. */
struct model {
	char name[64];     /* the network's */
	char options[512]; /* settings of the network, "a=1 b=2" */
	char objective[32]; /* "": the network's usual one */
};

/* A file has those of the network, by their names. */
static enum mu_status read_settings(struct mu_array_file *file, const struct mu_network *network,
				    struct model *m)
{
	enum mu_status st = MU_OK;
	char value[64];

	m->options[0] = '\0';
	for (size_t i = 0; i < mu_network_settings(network); i++) {
		const struct mu_option *row = &network->settings[i];
		const size_t n = strlen(m->options);

		MU_TRY(mu_array_file_find_text(file, row->name, value, sizeof value));
		if (*value && !(row->initial && strcmp(value, row->initial) == 0))
			snprintf(m->options + n, sizeof m->options - n, "%s=%s ", row->name,
				 value);
	}
out:
	return st;
}

/* What a checkpoint says of its model. */
static enum mu_status describe(const char *parameters, struct mu_net_config *config,
			       struct model *m)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *file = NULL;
	const struct mu_network *network;
	char number[64];

	MU_TRY(mu_array_file_open_checked(&file, parameters));
	MU_TRY(mu_array_file_get_text(file, "network", m->name, sizeof m->name));
	MU_TRY(mu_array_file_get_text(file, "num-layers", number, sizeof number));
	config->num_layers = strtol(number, NULL, 10);
	MU_TRY(mu_array_file_get_text(file, "num-classes", number, sizeof number));
	config->classes = strtoul(number, NULL, 10);
	MU_TRY(mu_network_find(&network, m->name));
	MU_TRY(read_settings(file, network, m));
	if (network->objective)
		MU_TRY(mu_array_file_find_text(file, "objective", m->objective,
					       sizeof m->objective));
	config->objective = *m->objective ? m->objective : NULL;
	config->options = m->options;
	config->network = m->name;
out:
	mu_array_file_close(file, false);
	return st;
}

/* name: of the network; NULL: as the file says. */
static enum mu_status infer(const char *parameters, const char *images, const char *name)
{
	enum mu_status st = MU_OK;
	struct mu_device device = {.ops = NULL};
	struct mu_net_config config = {.network = name, .classes = 10};
	const struct mu_network *network;
	struct mu_net *net = NULL;
	struct mu_plan *plan = NULL;
	struct mu_idx idx = {.data = NULL};
	float *weights = NULL;
	struct model recorded = {.objective = ""};

	if (!name)
		MU_TRY(describe(parameters, &config, &recorded));
	MU_TRY(mu_idx_read(&idx, images, 3));
	config.shape = (struct mu_shape)MU_SAMPLE(1, idx.dims[1], idx.dims[2]);
	MU_TRY(mu_network_find(&network, config.network));
	MU_TRY(mu_device_open(&device, NULL, THREADS));
	MU_TRY(mu_net_new_from(&net, network, &config));
	MU_TRY(mu_plan_new(&plan, net, &device, BATCH, MU_PHASE_INFER, NULL));
	MU_TRY(MU_ALLOC(weights, mu_plan_n(plan), "weights"));
	MU_TRY(mu_plan_bind(plan, weights, NULL));
	MU_TRY(mu_load_weights(plan, parameters, false, weights));
	for (size_t i = 0, size = idx.dims[1] * idx.dims[2]; i < idx.dims[0]; i += BATCH)
		MU_TRY(classify(plan, idx.data + i * size,
				idx.dims[0] - i < BATCH ? idx.dims[0] - i : BATCH, size));
out:
	mu_plan_free(plan);
	mu_net_free(net);
	mu_device_close(&device);
	mu_idx_release(&idx);
	mu_free(weights);
	return st;
}

int main(int argc, char **argv)
{
	const bool help = argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"));

	if (argc != 3 && argc != 4) {
		fprintf(help ? stdout : stderr,
			"usage: infer PARAMETERS.h5 IMAGES [NETWORK]\n");
		return help ? 0 : 2;
	}
	if (infer(argv[1], argv[2], argv[3]) == MU_OK)
		return 0;
	mu_trace_report(stderr, "infer");
	return 1;
}
