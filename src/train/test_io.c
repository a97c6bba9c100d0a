/* SPDX-License-Identifier: Apache-2.0 */
/* --test-io 1: go through the training data without training, and say how fast, as MXNet's trainer
 * does. */
#include "train.h"

#include <muster/base.h>

enum mu_status mu_train_test_io(struct train_run *run)
{
	struct mu_input *in = &run->train;
	float *to = run->devices.samples ? run->devices.samples : mu_plan_input(run->plan);
	double start, window, samples = 0;
	size_t period = (size_t)run->options.disp_batches;

	if (run->topology.index == 0)
		mu_train_report_data(run);
	mu_input_epoch(in, 0);
	start = window = mu_now();
	for (size_t step = 0; step < run->steps; step++) {
		samples += (double)mu_input_read(in, step, to, run->labels, run->ids);
		if (run->topology.index == 0 && (step + 1) % period == 0) {
			mu_log_info("Batch [%zu]\tSpeed: %.2f samples/sec", step,
				    (double)(period * in->config.batch) / (mu_now() - window));
			window = mu_now();
		}
	}
	if (run->topology.index == 0)
		mu_log_info("worker 0 read %.0f samples in %.3f s: %.2f samples/sec", samples,
			    mu_now() - start, samples / (mu_now() - start));
	return MU_OK;
}
