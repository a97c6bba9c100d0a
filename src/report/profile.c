/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --profile: where the time of the training steps goes, or with --evaluate of the validation,
 * by layer and phase. The plans of the first device measure the layers; data, store and
 * update have the clocks of the log; the rest (metrics, log, checks, waits for other devices) is
 * called "other", so that all rows together are the whole time.
 */
#include "observers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>
#include <muster/storage.h>

/* Phases that belong to no layer. */
static const enum mu_clock clocks[] = {MU_CLOCK_DATA, MU_CLOCK_PUSH, MU_CLOCK_PULL, MU_CLOCK_UPDATE,
				       MU_CLOCK_COMPRESS};
enum { N_CLOCKS = sizeof clocks / sizeof *clocks, FORWARD = N_CLOCKS, BACKWARD, OTHER, N_PHASES };

struct profile {
	const struct mu_engine *engine;
	const struct mu_plan *plan; /* its layers are the rows */
	size_t n;                   /* layers */
	struct mu_layer_times *layers;
	struct mu_device_limits limits; /* 0: not known */
	double begin[N_CLOCKS], start;
	double seconds;          /* of the training, or the evaluation */
	double phases[N_PHASES]; /* the parts of it */
	struct mu_replace replace;
	FILE *file; /* of worker 0, NULL: a table on standard output */
};

struct row {
	const char *layer, *phase;
	char kind[64], algorithm[32];
	struct mu_layer_time time;
	double flops, bytes; /* of all calls */
};

/* ---- measuring ---- */

/* The plans of the first device that are measured; rows belong to the last plan. */
static void measure_plans(struct profile *p)
{
	const struct mu_engine *e = p->engine;
	const struct engine_device *d = &e->devices.of[0];
	const bool evaluates = e->conf->evaluate;

	for (size_t g = 0; g < e->n_groups; g++) {
		struct mu_plan *full = evaluates ? d->plans[g].infer : d->plans[g].full;
		struct mu_plan *tail = evaluates ? NULL : d->plans[g].tail;

		if (full)
			mu_plan_measure(full, p->layers);
		if (tail)
			mu_plan_measure(tail, p->layers);
		if (full)
			p->plan = full;
	}
}

static enum mu_status begin_file(struct profile *p, const char *path)
{
	enum mu_status st = MU_OK;

	st = mu_replace_open(&p->replace, path);
	if (st != MU_OK)
		mu_trace_prefix("--profile ");
	MU_TRY(st);
	p->file = p->replace.stream;
out:
	return st;
}

/* Worker 0 begins the file, all workers measure their devices. */
static enum mu_status open(struct report_observer *o)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = o->view->engine;
	const char *path = e->conf->profile;
	struct engine_device *d;
	struct profile *p;

	if (!path || e->members->role != MU_ROLE_WORKER)
		goto out;
	MU_TRY(MU_ALLOC(p, 1, "profile"));
	o->state = p;
	p->engine = e;
	p->n = mu_plan_layers(e->plan);
	MU_TRY(MU_ALLOC(p->layers, p->n, "times of the layers"));
	if (*path && mu_report_is_worker_0(o))
		MU_TRY(begin_file(p, path));
	d = &e->devices.of[0];
	if (d->device.ops->measure)
		MU_TRY(d->device.ops->measure(&d->device, &p->limits));
	measure_plans(p);
out:
	return st;
}

static void close(struct report_observer *o)
{
	struct profile *p = o->state;

	mu_replace_release(&p->replace);
	mu_free(p->layers);
	mu_free(p);
}

static void epoch_begin(struct report_observer *o, size_t first)
{
	struct profile *p = o->state;

	(void)first;
	p->start = mu_now();
	for (int i = 0; i < N_CLOCKS; i++)
		p->begin[i] = mu_clock_seconds(clocks[i]);
}

static void epoch_end(struct report_observer *o)
{
	struct profile *p = o->state;

	p->seconds += mu_now() - p->start;
	for (int i = 0; i < N_CLOCKS; i++)
		p->phases[i] += mu_clock_seconds(clocks[i]) - p->begin[i];
}

/* ---- rows ---- */

static const char *phase_name(int i)
{
	static const char *const names[] = {
		[FORWARD] = "forward", [BACKWARD] = "backward", [OTHER] = "other"};

	return i < N_CLOCKS ? mu_clock_name(clocks[i]) : names[i];
}

static struct row layer_row(const struct profile *p, size_t l, bool backward)
{
	const struct mu_plan *plan = p->plan;
	const struct mu_layer_times *times = &p->layers[l];
	struct row r = {.layer = mu_plan_layer_name(plan, l),
			.phase = phase_name(backward ? BACKWARD : FORWARD),
			.time = backward ? times->backward : times->forward};
	struct mu_layer_cost costs[2];

	mu_plan_layer_cost(plan, l, &costs[0], &costs[1]);
	mu_plan_layer_kind(plan, l, r.kind, sizeof r.kind);
	mu_plan_layer_algorithm(plan, l, backward, r.algorithm, sizeof r.algorithm);
	r.flops = (double)r.time.samples * costs[backward].flops;
	r.bytes = (double)r.time.samples * costs[backward].sample_bytes +
		  (double)r.time.calls * costs[backward].call_bytes;
	return r;
}

static void settle_phases(struct profile *p)
{
	p->phases[FORWARD] = p->phases[BACKWARD] = 0;
	for (size_t l = 0; l < p->n; l++) {
		p->phases[FORWARD] += p->layers[l].forward.seconds;
		p->phases[BACKWARD] += p->layers[l].backward.seconds;
	}
	p->phases[OTHER] = p->seconds;
	for (int i = 0; i < OTHER; i++)
		p->phases[OTHER] -= p->phases[i];
}

/* Rows of layers, then of the other phases. */
static enum mu_status make_rows(const struct profile *p, struct row **out, size_t *n)
{
	enum mu_status st = MU_OK;
	struct row *rows;

	*n = 0;
	MU_TRY(MU_ALLOC(*out, 2 * p->n + N_PHASES, "rows of the profile"));
	rows = *out;
	for (size_t l = 0; l < p->n; l++) {
		rows[(*n)++] = layer_row(p, l, false);
		if (p->layers[l].backward.calls > 0)
			rows[(*n)++] = layer_row(p, l, true);
	}
	for (int i = 0; i < N_PHASES; i++)
		if (i != FORWARD && i != BACKWARD)
			rows[(*n)++] = (struct row){
				.layer = "", .phase = phase_name(i), .time.seconds = p->phases[i]};
out:
	return st;
}

static double share(const struct profile *p, double seconds)
{
	return seconds / p->seconds;
}

static double rate(double amount, double seconds)
{
	return seconds > 0 ? amount / seconds / 1e9 : 0;
}

/* The least time that the limits allow, as a fraction of the time measured. */
static double of_limit(const struct profile *p, const struct row *r)
{
	double least;

	if (p->limits.flops == 0 || r->time.seconds <= 0)
		return 0;
	least = fmax(r->flops / p->limits.flops, r->bytes / p->limits.bytes);
	return least / r->time.seconds;
}

/* ---- CSV ---- */

/* A name of a user's layer may hold anything. In quotes always: scripts read such files. */
static void put_quoted(FILE *file, const char *text)
{
	fputc('"', file);
	for (; *text; text++)
		fprintf(file, *text == '"' ? "\"\"" : "%c", *text);
	fputc('"', file);
}

static enum mu_status write_csv(struct profile *p, const struct row *rows, size_t n)
{
	enum mu_status st = MU_OK;
	const char *path = p->engine->conf->profile;

	fprintf(p->file, "layer,kind,algorithm,phase,calls,samples,seconds,share,flop,bytes,"
			 "gflop_per_s,gbyte_per_s,of_limit,fastest_seconds_per_sample\n");
	for (size_t i = 0; i < n; i++) {
		const struct row *r = &rows[i];

		put_quoted(p->file, r->layer);
		fputc(',', p->file);
		put_quoted(p->file, r->kind);
		fprintf(p->file, ",%s,%s,%zu,%zu,%.9f,%.6f,%.0f,%.0f,%.3f,%.3f,%.4f,%.9f\n",
			r->algorithm, r->phase, r->time.calls, r->time.samples, r->time.seconds,
			share(p, r->time.seconds), r->flops, r->bytes,
			rate(r->flops, r->time.seconds), rate(r->bytes, r->time.seconds),
			of_limit(p, r), r->time.fastest);
	}
	p->file = NULL;
	st = mu_replace_commit(&p->replace);
	if (st != MU_OK)
		mu_trace_prefix("--profile ");
	MU_TRY(st);
	mu_log_info("Saved profile to \"%s\"", path);
out:
	return st;
}

/* ---- table ---- */

/* A number, or a dash where there is none. */
static void put_number(int width, int decimals, double v)
{
	if (v > 0)
		printf(" %*.*f", width, decimals, v);
	else
		printf(" %*s", width, "-");
}

static void print_row(const struct profile *p, const struct row *r)
{
	printf("%-30s %-22s %-17s %-8s", r->layer, r->kind, r->algorithm, r->phase);
	put_number(6, 0, (double)r->time.calls);
	put_number(9, 3, r->time.calls ? 1e3 * r->time.seconds / (double)r->time.calls : 0);
	put_number(10, 4, r->time.seconds);
	printf(" %6.2f", 100 * share(p, r->time.seconds));
	put_number(8, 1, rate(r->flops, r->time.seconds));
	put_number(7, 1, rate(r->bytes, r->time.seconds));
	put_number(6, 2, of_limit(p, r));
	printf("\n");
}

static int slower_first(const void *a, const void *b)
{
	double x = ((const struct row *)a)->time.seconds, y = ((const struct row *)b)->time.seconds;

	return (x < y) - (x > y);
}

static bool same_kind(const struct row *a, const struct row *b)
{
	return strcmp(a->kind, b->kind) == 0 && strcmp(a->algorithm, b->algorithm) == 0 &&
	       strcmp(a->phase, b->phase) == 0;
}

/* Sums of rows of one kind, algorithm and phase, in place of the rows; how many there are. */
static size_t sum_kinds(struct row *rows, size_t n)
{
	size_t kinds = 0, k;

	for (size_t i = 0; i < n; i++) {
		for (k = 0; k < kinds && !same_kind(&rows[k], &rows[i]); k++)
			;
		if (k == kinds) {
			rows[kinds] = rows[i];
			rows[kinds++].layer = "";
			continue;
		}
		rows[k].time.calls += rows[i].time.calls;
		rows[k].time.seconds += rows[i].time.seconds;
		rows[k].flops += rows[i].flops;
		rows[k].bytes += rows[i].bytes;
	}
	qsort(rows, kinds, sizeof *rows, slower_first);
	return kinds;
}

static void print_head(const char *first)
{
	printf("\n%-30s %-22s %-17s %-8s %6s %9s %10s %6s %8s %7s %6s\n", first, "kind",
	       "algorithm", "phase", "calls", "ms/call", "seconds", "%", "GFLOP/s", "GB/s",
	       "limit");
}

static enum mu_status print_table(const struct profile *p, struct row *rows, size_t n)
{
	enum mu_status st = MU_OK;
	const struct mu_device_limits *limits = &p->limits;

	printf("profile of worker 0%s: %.3f s of %s\n",
	       p->engine->devices.list.n > 1 ? ", layers of its first device" : "",
	       p->seconds, p->engine->conf->evaluate ? "validation" : "training");
	print_head("layer");
	for (size_t i = 0; i < n; i++)
		print_row(p, &rows[i]);
	n = sum_kinds(rows, n);
	print_head("by kind");
	for (size_t i = 0; i < n; i++)
		print_row(p, &rows[i]);
	printf("\nGFLOP/s: 2 operations for each multiply-add of convolutions and fully connected "
	       "layers, whatever the\nalgorithm. GB/s: the arrays that a phase must read or write, "
	       "each once, as plain float32; they may lie in caches.\n");
	if (limits->flops > 0)
		printf("limit: the time at %.1f GFLOP/s or at %.1f GB/s, the longer one, as a part "
		       "of the time taken. These were measured\nat the start: a product of "
		       "matrices of --dtype, a copy in memory. Winograd and caches can go past "
		       "them.\n",
		       limits->flops / 1e9, limits->bytes / 1e9);
	if (limits->host_bytes > 0)
		printf("host to device: %.1f GB/s\n", limits->host_bytes / 1e9);
	if (fflush(stdout) != 0 || ferror(stdout))
		MU_FAIL(MU_ERR_IO, "the profile could not be written");
out:
	return st;
}

/* ---- over the workers ---- */

/* "forward 1.21 to 1.35 s (worker 3)": the fastest and the slowest worker. */
static void report_spread(const double *all, int workers)
{
	char line[1024] = "";
	size_t at = 0;

	for (int i = 0; i < N_PHASES && at < sizeof line; i++) {
		int least = 0, most = 0;

		for (int w = 1; w < workers; w++) {
			if (all[w * N_PHASES + i] < all[least * N_PHASES + i])
				least = w;
			if (all[w * N_PHASES + i] > all[most * N_PHASES + i])
				most = w;
		}
		at += (size_t)snprintf(line + at, sizeof line - at,
				       "%s%s %.3f (worker %d) to %.3f (worker %d)", i ? ", " : "",
				       phase_name(i), all[least * N_PHASES + i], least,
				       all[most * N_PHASES + i], most);
	}
	mu_log_info("profile over %d worker%s, seconds: %s", workers, MU_S(workers),
		    line);
}

static enum mu_status end(struct report_observer *o)
{
	enum mu_status st = MU_OK;
	struct profile *p = o->state;
	const struct mu_members *m = p->engine->members;
	int workers;
	struct row *rows = NULL;
	double *all = NULL;
	size_t n;

	if (p->seconds == 0) {
		if (m->index == 0)
			mu_log_info("no profile: nothing was trained");
		return MU_OK;
	}
	settle_phases(p);
	MU_TRY(mu_peers_gather(m, p->phases, sizeof p->phases, (void **)&all, &workers));
	if (m->index != 0)
		goto out;
	if (workers > 1)
		report_spread(all, workers);
	MU_TRY(make_rows(p, &rows, &n));
	if (p->file)
		MU_TRY(write_csv(p, rows, n));
	else
		MU_TRY(print_table(p, rows, n));
out:
	mu_free(rows);
	mu_free(all);
	return st;
}

const struct report_observer_ops mu_report_profile = {
	.open = open,
	.close = close,
	.epoch_begin = epoch_begin,
	.epoch_end = epoch_end,
	.end = end,
};
