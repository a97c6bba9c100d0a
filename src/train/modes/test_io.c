/* SPDX-License-Identifier: Apache-2.0 */
/* --test-io 1: read the training data without training and report the speed, as MXNet's trainer
 * does. */
#include "modes.h"
#include "report/report.h"

#include <muster/base.h>

enum mu_status mu_train_batch_new(struct mu_input_batch *batch, const struct mu_input *in)
{
	enum mu_status st = MU_OK;
	size_t n = in->config.batch, sample = mu_shape_sample(mu_input_shape(in));

	MU_TRY(MU_ALLOC(batch->data, n * sample, "samples"));
	MU_TRY(MU_ALLOC(batch->labels, n * mu_input_width(in), "labels"));
	MU_TRY(MU_ALLOC(batch->ids, n, "sample ids"));
out:
	return st;
}

void mu_train_batch_free(struct mu_input_batch *batch)
{
	mu_free(batch->data);
	mu_free(batch->labels);
	mu_free(batch->ids);
}

enum mu_status mu_train_test_io(const struct mu_engine *e, struct mu_input *in)
{
	enum mu_status st = MU_OK;
	struct mu_input_batch batch = {0}, own = {0};
	double start, window, samples = 0;
	size_t period = (size_t)e->conf->disp_batches;

	if (e->members->index == 0)
		mu_report_data(e);
	if (!in->pipeline)
		MU_TRY(mu_train_batch_new(&own, in));
	start = window = mu_now();
	MU_TRY(mu_input_epoch(in, 0));
	for (size_t step = 0; step < e->steps; step++) {
		batch = own;
		MU_TRY(mu_input_borrow(in, step, &batch));
		samples += (double)batch.count;
		if (e->members->index == 0 && (step + 1) % period == 0) {
			mu_log_info("Batch [%zu]\tSpeed: %.2f samples/sec", step,
				    (double)(period * in->config.batch) / (mu_now() - window));
			window = mu_now();
		}
	}
	if (e->members->index == 0)
		mu_log_info("worker 0 read %.0f samples in %.3f s: %.2f samples/sec", samples,
			    mu_now() - start, samples / (mu_now() - start));
out:
	mu_train_batch_free(&own);
	return st;
}
