/* SPDX-License-Identifier: Apache-2.0 */
/* plan: the representation of a plan, private to src/net. */
#ifndef NET_PLAN_H
#define NET_PLAN_H

#include "net/layers/layer.h"
#include "net/plan.h"

/* Slice k of the flat arrays is parameter `param` (as net_layer counts) of operation `op`. */
struct plan_key {
	size_t op;
	int param;
};

#define MU_PLAN_NONE ((size_t)-1)

/* Weights that two operations share: see mu_net_tie. */
struct plan_tie {
	size_t with; /* the embedding, whose weight the operation's first parameter is; or NONE */
	size_t reader; /* of an embedding: the operation with its weight, or NONE */
	bool sums;     /* gradients are added to those of earlier plans: see mu_plan_bind_sum */
};

/* Flat arrays. */
struct plan_arrays {
	float *weights, *gradients; /* gradients NULL for inference */
	float *sum;                 /* of earlier plans' gradients; NULL: none */
};

/* A flat array of the host, and its mirror on a device with its own memory. */
enum { PLAN_MIRRORS = 3 };
struct plan_mirror {
	float *host, *device;
};

/*
 * State of an operation in a part of a time block: pointers, and this part's own memory: h and c
 * after its last step, and their gradients before its first step; in the first part also the memory
 * that all blocks share.
 */
struct plan_state {
	struct mu_state op;
	float *own;
	void *shared;
};

/* For a device with its own memory: one block of samples as bytes, draws of the batch, labels,
 * samples as floats; only one of the two kinds of samples is used. */
struct plan_feed {
	struct mu_feed memory;
	size_t draws_at, labels_at, samples_at, nbytes; /* nbytes == samples_at: the plan reads no
							   samples */
	bool as_bytes;           /* kind of the last transfer */
	struct mu_pixels pixels; /* values of the bytes */
	bool sent; /* a batch is on its way or has arrived, and forward has not begun */
};

/* Layers [from, to) whose forward or backward is submitted as a whole. */
struct plan_piece {
	size_t from, to;
	bool can_record, ran; /* ran: with the current batch, so the next run is recorded */
	void *recording;      /* NULL: not recorded yet */
};

struct plan_pieces {
	struct plan_piece *all;
	size_t n;
	size_t *of; /* piece of each layer */
};

struct plan_record {
	bool on;
	struct plan_pieces forward, backward;
	struct mu_batch batch; /* batch during the recording */
};

/* The keys: slices of the flat arrays, as the device lays them out. */
struct plan_layout {
	struct mu_slice *slices;
	struct plan_key *keys;
	size_t n_slices, n;    /* n: elements of a flat array */
	size_t **op_keys;      /* per operation: its n_params + n_aux keys */
	struct plan_tie *ties; /* per operation */
};

/* The flat arrays in use, and how they come to a device with its own memory and back. */
struct plan_flat {
	const size_t *places;      /* see mu_plan_set_places */
	struct plan_arrays host;   /* as passed by the caller */
	struct plan_arrays mirror; /* the device's, if it has its own memory */
	struct plan_mirror mirrors[PLAN_MIRRORS]; /* these, and others bound before */
	/* For such a device: version of each key's weights, owned by the caller (NULL: unknown),
	 * and 1 + the version that forward has copied to the device, 0 for none. */
	const uint64_t *versions;
	uint64_t *brought;
	bool resident; /* the caller moves the arrays: see mu_plan_set_resident */
	bool has_weights, sum_stays; /* see mu_plan_set_upload; mu_plan_bind_sum, except with
					`last` */
};

/* all[first[l] .. first[l + 1]): operations to restore before l's backward, in this order. */
struct plan_restore {
	size_t *all, *first;
};

/* Backward of a device with its own memory. */
struct plan_backward {
	uint64_t *marks; /* after backward of each layer and the copy of its gradients */
	size_t begun, left; /* submitted for layers `begun` and later; gradients of layers `left`
			       and later have arrived */
};

struct plan_memory {
	void *arena;
	size_t nbytes;
	bool borrowed; /* owned by another plan */
	bool dry;      /* without arena: for queries only */
};

/* A part of a time block. */
struct plan_block {
	bool on;                     /* with states, one per operation once allocated */
	const struct mu_plan *first; /* see struct mu_plan_part */
	struct plan_state *states;
};

/* mu_plan_remember. */
struct plan_past {
	struct mu_past *all; /* per operation; NULL: it remembers nothing */
	bool shared;         /* their rows are another plan's */
};

/* Loss scaling: was a gradient not finite since the last query? The word is in device memory, if
 * the device has its own. */
struct plan_scale {
	bool overflowed;
	uint32_t *word;
};

struct plan_result {
	/* Plain copy, if the device's layout is not plain; of rows, and of a device with its own
	 * memory, made at the first query. */
	float *probabilities;
	bool owned;
	/* mu_plan_set_results_later: the last forward's have not been waited for; their mark. */
	bool due;
	uint64_t mark;
};

struct mu_plan {
	const struct mu_net *net;
	struct mu_device *device;
	enum mu_phase phase;
	size_t batch_size;
	struct mu_batch batch;
	struct mu_tensor
		*tensors; /* as many as in the net; those removed by fusion stay empty */
	size_t n_tensors;
	struct mu_op *ops;
	struct mu_tensor ***links; /* per operation: its inputs, then its outputs */
	size_t n_ops, n_planned;   /* n_planned: operations that the device must release */
	/* For a part: its description, until it is complete, and the number of its first operation
	 * in the whole plan. */
	const struct mu_plan_part *part;
	size_t first;
	/* Tensors that are read here and written elsewhere: the net's input, and tensors of other
	 * parts. */
	size_t *received, n_received;
	struct plan_layout layout;
	struct plan_flat flat;
	struct plan_memory memory;
	struct plan_restore restore;
	struct plan_block block;
	struct plan_past past;
	struct plan_feed feed;
	struct plan_record record;
	struct plan_backward backward;
	struct plan_scale scale;
	struct plan_result result;
	struct mu_layer_times *times; /* of all layers, owned by the caller; NULL: not measured */
};

/* NULL: the device works in host memory. */
static inline const struct mu_device_memory *memory_of(const struct mu_plan *plan)
{
	return plan->device->ops->memory;
}

/* query.c: the operation that writes tensor t; MU_PLAN_NONE: none of this plan. */
size_t mu_plan_maker(const struct mu_plan *plan, const struct mu_tensor *t);
/* Is tensor t read by an operation of the plan? */
bool mu_plan_reads(const struct mu_plan *plan, const struct mu_tensor *t);
/* Does the plan end with the net's last operation? */
bool mu_plan_has_end(const struct mu_plan *plan);
/* Does backward of the operation read the values of input i, or of its outputs? */
bool mu_plan_reads_input(const struct mu_op *op, int i);
bool mu_plan_reads_output(const struct mu_op *op);
/* Does backward undo the activation in the output's gradient, or leave that to the reader of the
 * output? A batch-norm with one input does neither: its formula includes the activation. */
bool mu_plan_has_activation_to_undo(const struct mu_op *op);

/* layout.c: the keys of all operations, or for a part those of the whole plan's. */
enum mu_status mu_plan_lay_keys(struct mu_plan *plan);
void mu_plan_free_layout(struct mu_plan *plan);
/* The parameter of slice k; parameter `param`, as net_layer counts, of an operation. */
struct mu_param *mu_plan_param(const struct mu_plan *plan, size_t k);
struct mu_param *mu_plan_op_param(struct mu_op *op, int param);

/* fuse.c: fill ops and links from the net's layers, fusing activations. */
enum mu_status mu_plan_operations(struct mu_plan *plan);
/* After the device's plans: splits whose backward the batch-norm before them does. */
void mu_plan_join_splits(struct mu_plan *plan);

/* tie.c: find weights that operations share. An error if only one of the two is in the part. */
enum mu_status mu_plan_find_ties(struct mu_plan *plan);
/* The embedding's layout, before the device plans operation i. */
enum mu_status mu_plan_tie_layout(struct mu_plan *plan, size_t i);
/* What backward of operation i adds to: itself (an earlier operation's part of a shared gradient),
 * with `sums` what earlier plans left; so op->adds. */
void mu_plan_tie_adds(struct mu_plan *plan, size_t i, bool sums);
/* The first parameter whose key is the operation's own. */
int mu_plan_first_own(const struct mu_plan *plan, size_t i);

/* past.c: free what mu_plan_remember made. */
void mu_plan_forget(struct mu_plan *plan);

/* part.c: keep only the operations of a part. In every plan, find the received tensors. */
enum mu_status mu_plan_cut(struct mu_plan *plan);

/* restore.c: choose the outputs that are recomputed for backward. */
enum mu_status mu_plan_choose_restores(struct mu_plan *plan);

/* arena.c: place all activations, gradients, workspaces and scratch in one arena by lifetime, and
 * set pointers. For a dry plan compute arena_bytes only. */
enum mu_status mu_plan_memory(struct mu_plan *plan);

/* run.c: run forward, or backward, of layers [from, to) now. */
enum mu_status mu_plan_run(struct mu_plan *plan, bool backward, size_t from, size_t to);
/* record.c: layer l is due: run it; if its work is recorded, submit its piece once the whole piece
 * is due. *given: the piece was submitted. */
enum mu_status mu_plan_submit(struct mu_plan *plan, bool backward, size_t l, bool *given);
/* Drop all recordings. */
void mu_plan_record_drop(struct mu_plan *plan);
void mu_plan_record_close(struct mu_plan *plan);

/* feed.c: _begin before forward of the first layer. */
enum mu_status mu_plan_feed_open(struct mu_plan *plan);
void mu_plan_feed_close(struct mu_plan *plan);
enum mu_status mu_plan_feed_begin(struct mu_plan *plan);

/* transfer.c: memory of the plan, on the host or the device. */
enum mu_status mu_plan_alloc(struct mu_plan *plan, void **out, size_t nbytes, const char *what);
void mu_plan_release(struct mu_plan *plan, void *memory);
enum mu_status mu_plan_alloc_words(struct mu_plan *plan);
void mu_plan_free_memory(struct mu_plan *plan);
/* Replace the host's flat arrays by those that operations use. */
enum mu_status mu_plan_mirror(struct mu_plan *plan, struct plan_arrays *arrays);
/* Before forward of layer l; after its backward. No effect on devices that work in host memory. */
enum mu_status mu_plan_upload(struct mu_plan *plan, size_t l);
enum mu_status mu_plan_download(struct mu_plan *plan, size_t l);
/* Wait until the gradients of layer l have arrived, unless they stay on the device. */
enum mu_status mu_plan_backward_wait(struct mu_plan *plan, size_t l);

/* transfer.c: after forward of a layer with loss_later: mark where its results are there. */
enum mu_status mu_plan_results_begin(struct mu_plan *plan);
/* Memory of the host for the probabilities, from which and to which the device copies fast. */
enum mu_status mu_plan_alloc_probabilities(struct mu_plan *plan);
void mu_plan_free_probabilities(struct mu_plan *plan);

/* blocks.c: memory for the states that a part of a block passes to others. */
enum mu_status mu_plan_alloc_states(struct mu_plan *plan);
void mu_plan_free_states(struct mu_plan *plan);

/* scale.c: with loss scaling, after backward of layers [from, to): divide their gradients by the
 * scale and check them. */
enum mu_status mu_plan_unscale(struct mu_plan *plan, size_t from, size_t to);

#endif
