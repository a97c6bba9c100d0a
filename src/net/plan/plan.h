/* SPDX-License-Identifier: Apache-2.0 */
/* plan: the inside of a plan, known to src/net only. */
#ifndef NET_PLAN_H
#define NET_PLAN_H

#include "net/graph/graph.h"

/* Slice k of the flat arrays is parameter `param` (net_layer's count) of operation `op`. */
struct plan_key {
	size_t op;
	int param;
};

#define MU_PLAN_NONE ((size_t)-1)

/* Flat arrays. */
struct plan_arrays {
	float *weights, *gradients; /* gradients NULL for inference */
	float *sum;                 /* of earlier plans' gradients; NULL: there is none */
};

/* A flat array of the host's, and what stands for it on a device with memory of its own. */
enum { PLAN_MIRRORS = 3 };
struct plan_mirror {
	float *host, *device;
};

/* Of an operation in a part of a block: what its state is, and memory for its own half of it: h and
 * c behind its last step, and the gradients of those in front of its first; in the first part also
 * what all have together. */
struct plan_state {
	struct mu_state op;
	float *own;
	void *shared;
};

/* Of a device with memory of its own: a block with samples as bytes, draws of the batch, labels,
 * samples; of the two kinds of samples one is used. */
struct plan_feed {
	struct mu_feed memory;
	size_t draws_at, labels_at, samples_at, nbytes; /* nbytes is samples_at: it reads none */
	bool as_bytes;           /* what was sent last */
	struct mu_pixels pixels; /* what bytes mean */
	bool sent; /* a batch is on its way, or there, that forward has not begun with */
};

/* Layers [from, to), whose forward or backward is given to the device at once. */
struct plan_piece {
	size_t from, to;
	bool can_record, ran; /* ran: as the batch is now, so it is recorded the next time */
	void *recording;      /* NULL: not yet */
};

struct plan_pieces {
	struct plan_piece *all;
	size_t n;
	size_t *of; /* the piece of each layer */
};

struct plan_record {
	bool on;
	struct plan_pieces forward, backward;
	struct mu_batch batch; /* what pieces were recorded with */
};

struct mu_plan {
	const struct mu_net *net;
	struct mu_device *device;
	enum mu_phase phase;
	size_t batch_size;
	struct mu_batch batch;
	struct mu_tensor
		*tensors; /* as many as the net has; those that fusion removed stay empty */
	size_t n_tensors;
	struct mu_op *ops;
	struct mu_tensor ***links; /* per operation: its inputs, then its outputs */
	size_t n_ops, n_planned;   /* n_planned: operations that the device has to release */
	/* Of a part: the plan it is of, until it is made, and its first operation's number there.
	 */
	const struct mu_plan_part *part;
	size_t first;
	/* Tensors that are read here and made elsewhere: the net's input, and of a part others'. */
	size_t *received, n_received;
	/* restores[restore_first[l] .. restore_first[l + 1]): operations that are restored before
	 * l's backward, in this order. */
	size_t *restores, *restore_first;
	struct mu_slice *slices;
	struct plan_key *keys;
	size_t n_slices, n;
	size_t **op_keys;          /* per operation: its n_params + n_aux keys */
	struct plan_arrays host;   /* as the caller has them */
	struct plan_arrays mirror; /* the device's, if it has memory of its own */
	struct plan_mirror mirrors[PLAN_MIRRORS]; /* these, and others it was bound to */
	/* Of such a device: versions of each key's weights, the caller's (NULL: nobody says), and
	 * 1 + that of what forward has brought to the device, 0 for nothing. */
	const uint64_t *versions;
	uint64_t *brought;
	bool resident; /* somebody else moves these: see mu_plan_set_resident */
	bool has_weights, sum_stays; /* see mu_plan_bring_weights; mu_plan_bind_sum, not the last */
	struct plan_feed feed;
	struct plan_record record;
	/* Of such a device: behind backward of each layer and what it brought back. */
	uint64_t *marks;
	size_t begun, left; /* backward has begun for the layers from `begun` on; the gradients of
			       those from `left` on are there */
	void *arena;
	bool borrowed; /* another plan's */
	size_t arena_bytes;
	struct mu_layer_times *times; /* of all layers, the caller's; NULL: nobody wants them */
	bool dry;                     /* without arena: only to be looked at */
	bool of_block;                /* with states, one for each operation once allocated */
	const struct mu_plan *first_block; /* see struct mu_plan_part */
	struct plan_state *states;
	/* With loss scaling: has a gradient not been finite since somebody asked? The word is of
	 * the device's own memory, if it has such. */
	bool overflowed;
	uint32_t *overflow;
	float *probabilities; /* plain copy where the device lays its output out otherwise */
};

/* The parameter behind slice k. */
struct mu_param *mu_plan_param(const struct mu_plan *plan, size_t k);

/* fuse.c: fill ops and links from the net's layers, fusing activations. */
enum mu_status mu_plan_operations(struct mu_plan *plan);

/* part.c: of a part keep its own operations. Of every plan find what is received. */
enum mu_status mu_plan_cut(struct mu_plan *plan);
/* Is tensor t read by an operation of the plan? */
bool mu_plan_reads(const struct mu_plan *plan, const struct mu_tensor *t);
/* Does the plan end with the net's last operation? */
bool mu_plan_has_end(const struct mu_plan *plan);

/* restore.c: choose the outputs that are computed again for backward. */
enum mu_status mu_plan_choose_restores(struct mu_plan *plan);

/* arena.c: place all activations, gradients, workspaces and scratch in one arena by
 * lifetime, and set pointers. Of a dry plan only arena_bytes. */
enum mu_status mu_plan_memory(struct mu_plan *plan);

/* plan.c: forward, or backward, of layer l, begun now. */
enum mu_status mu_plan_run(struct mu_plan *plan, bool backward, size_t l);
/* record.c: it is due: run it, or where work is recorded all of its piece as soon as the
 * whole piece is due. *given: that was so. */
enum mu_status mu_plan_give(struct mu_plan *plan, bool backward, size_t l, bool *given);
/* What is recorded no longer is. */
void mu_plan_record_drop(struct mu_plan *plan);
void mu_plan_record_close(struct mu_plan *plan);

/* feed.c: _begin before forward of the first layer. */
enum mu_status mu_plan_feed_open(struct mu_plan *plan);
void mu_plan_feed_close(struct mu_plan *plan);
enum mu_status mu_plan_feed_begin(struct mu_plan *plan);

/* transfer.c: memory of the plan, the host's or the device's. */
enum mu_status mu_plan_alloc_arena(struct mu_plan *plan);
enum mu_status mu_plan_alloc_words(struct mu_plan *plan);
void mu_plan_free_memory(struct mu_plan *plan);
/* The flat arrays: the host's become those that operations work on. */
enum mu_status mu_plan_mirror(struct mu_plan *plan, struct plan_arrays *arrays);
/* Before forward of layer l; behind its backward. Nothing for a device that works in the host's
 * memory. */
enum mu_status mu_plan_upload(struct mu_plan *plan, size_t l);
enum mu_status mu_plan_download(struct mu_plan *plan, size_t l);

/* blocks.c: memory for what a part of a block leaves to others. */
enum mu_status mu_plan_alloc_states(struct mu_plan *plan);
void mu_plan_free_states(struct mu_plan *plan);

/* scale.c: behind backward of layer l with loss scaling: its gradients are divided by the
 * scale again, and looked at. */
enum mu_status mu_plan_unscale(struct mu_plan *plan, size_t l);

/* Does the operation's backward read the values of input i, or those of its outputs? */
bool mu_plan_reads_input(const struct mu_op *op, int i);
bool mu_plan_reads_output(const struct mu_op *op);
/* Does it undo its activation in its output's gradient, or leave that to whoever reads the output?
 * A batch-norm of one input does not: it leaves out what the activation has. */
bool mu_plan_has_activation_to_undo(const struct mu_op *op);

/* measure.c: a call for so many samples is over. */
void mu_plan_add_time(struct mu_layer_time *t, double seconds, size_t samples);

#endif
