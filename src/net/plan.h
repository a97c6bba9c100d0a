/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan: what the trainer does with a plan besides muster/plan.h: memory, parts of a net on several
 * devices, time blocks, recorded and asynchronous execution, measurements.
 */
#ifndef NET_PLAN_INTERFACE_H
#define NET_PLAN_INTERFACE_H

#include <muster/metrics.h>
#include <muster/plan.h>

#include "device/op.h"

/* ---- layouts and memory ---- */

/* Complete a plan of mu_plan_new_dry. */
enum mu_status mu_plan_allocate(struct mu_plan *plan);
/* Allocate in the memory of another plan, where that is large enough. Only one of the two plans may
 * run at a time; free the owner last. */
enum mu_status mu_plan_allocate_in(struct mu_plan *plan, const struct mu_plan *owner);

/* Hash of the layout of the flat arrays. Ranks with equal hashes have (almost certainly) equal
 * layouts. */
uint64_t mu_plan_hash(const struct mu_plan *plan);
/* Hash of the names, plain shapes and rules of all parameters: the same on every device. */
uint64_t mu_plan_structure_hash(const struct mu_plan *plan);
size_t mu_plan_arena_bytes(const struct mu_plan *plan);

/*
 * For a plan for inference of one step of a sequence, or some, of a network whose layers need other
 * steps for causal attention and positions only: remember up to `most` steps. Forward works on the
 * steps from number `steps`, from 0, and reads what it remembers of the steps before.
 * MU_ERR_UNSUPPORTED: the device or a layer cannot. The memory goes with the plan; `share` lets
 * another plan of the same network, of more steps at once, use that of `of`, which must outlive it.
 */
enum mu_status mu_plan_remember(struct mu_plan *plan, size_t most);
enum mu_status mu_plan_share_past(struct mu_plan *plan, const struct mu_plan *of);
void mu_plan_set_past(struct mu_plan *plan, size_t steps);

/* ---- parts of a plan: a net on several devices ---- */

/*
 * A net can be cut into parts of consecutive layers, each a plan on its own device. Keys are those
 * of the whole plan: a part uses the same flat arrays, in the slices of its layers. The layers are
 * also those of the whole plan, fusions included; a part numbers its layers from 0.
 *
 * A part is used like a plan, except that the caller copies values between parts: values that other
 * parts computed before forward, gradients of the part's own outputs before backward:
 *
 *	mu_plan_receive(b, a);
 *	... forward of b's layers, and backward ...
 *	mu_plan_return(b, a);
 *
 * Nothing else may use a part between the end of its forward and its backward.
 */
struct mu_plan_part {
	const struct mu_net *net;
	struct mu_device *device; /* of the same kind as the whole plan's */
	size_t batch;
	enum mu_phase phase;
	const struct mu_plan *whole;   /* of this net, or of one with the same layers and keys */
	size_t first, n;               /* its layers, numbered as in the whole plan */
	struct mu_plan *const *before; /* n_before parts that compute all values that it reads */
	size_t n_before;
	bool of_block; /* part of a time block: see mu_plan_join */
	/* For time blocks, except for the first part made: that first part. It must be allocated
	 * before this one runs, and outlive it. */
	const struct mu_plan *first_block;
};
/* The part is dry until mu_plan_allocate or mu_plan_allocate_in. */
enum mu_status mu_plan_new_part(struct mu_plan **out, const struct mu_plan_part *part);
/* Copy the values that `from` computes and `part` reads. Both work on the same samples. Any parts
 * that were made for the same layers and batch may be combined. */
enum mu_status mu_plan_receive(struct mu_plan *part, const struct mu_plan *from);
/* Copy back their gradients, after backward of `part`. */
enum mu_status mu_plan_return(const struct mu_plan *part, struct mu_plan *to);
/*
 * Wait until the part's device is idle. For asynchronous devices, needed: before another part
 * receives what this one computed; after mu_plan_receive; and after mu_plan_return, before the part
 * that received gradients continues.
 */
enum mu_status mu_plan_finish(struct mu_plan *part);
/*
 * The same transfer through bytes, for a part in the memory of another rank: the values that `from`
 * computes and `to` reads, or with `gradients` their gradients in the other direction. Only the
 * plan that the bytes come from needs memory for _pack, only the one they go to for _unpack. Done
 * on return.
 */
size_t mu_plan_pack_nbytes(const struct mu_plan *from, const struct mu_plan *to, bool gradients);
enum mu_status mu_plan_pack(struct mu_plan *from, struct mu_plan *to, bool gradients, void *bytes);
enum mu_status mu_plan_unpack(struct mu_plan *from, struct mu_plan *to, bool gradients,
			      const void *bytes);

/*
 * Time blocks: a net of k steps processes longer sequences block by block, each with its own part;
 * forward in the order of the blocks, backward in the reverse order. Before forward of a block its
 * part is joined to the parts of the blocks before and after it, of the same layers; they keep
 * their values until its backward is done. LSTMs start with their final state of the block before,
 * and get the gradient of their final state from the block after. NULL: no such block. Dropout
 * draws other masks for each number `block`.
 */
void mu_plan_join(struct mu_plan *part, size_t block, const struct mu_plan *before,
		  const struct mu_plan *after);
/*
 * In a part of a time block, a layer with mu_plan_weights_later leaves the gradients of its
 * parameters to mu_plan_backward_weights, which does nothing for other layers. Call it after
 * backward of the part and before the end of the step, blocks in the same order; no other part
 * depends on it.
 */
bool mu_plan_weights_later(const struct mu_plan *part, size_t l);
enum mu_status mu_plan_backward_weights(struct mu_plan *part, size_t l);
/* MU_ERR_USAGE: the net has no LSTM, or a layer other than an LSTM that combines several steps. */
enum mu_status mu_net_check_blocks(const struct mu_net *net);

/* A tensor that passes from a layer to a later one, sizes for the whole batch; sorted by the
 * reading layer. */
struct mu_plan_edge {
	size_t from, to;
	size_t nbytes, gradient_nbytes; /* forward; backward, 0 if no gradient is needed */
};
/* *edges: a new array, freed by mu_free. */
enum mu_status mu_plan_edges(const struct mu_plan *plan, struct mu_plan_edge **edges, size_t *n);
/* Group of a layer, "" if the net has none. */
const char *mu_plan_layer_group(const struct mu_plan *plan, size_t l);

/* ---- execution ---- */

/* Before mu_plan_bind, on devices that work in host memory: key k's gradients begin at element
 * places[k], kept by the caller, and not at its slice. NULL: at the slice. */
void mu_plan_set_places(struct mu_plan *plan, const size_t *places);
/*
 * The same, but layers whose kernels can add (mu_plan_adds; none with a loss scale) add their
 * gradients to `sum` in backward. Other layers write theirs to `own`, an array of the same size,
 * which the caller adds. A device with its own memory keeps the sum there, if the first plan of the
 * sum was bound by mu_plan_bind on the same device; the plan with `last` copies the sum back.
 */
enum mu_status mu_plan_bind_sum(struct mu_plan *plan, float *weights, float *sum, float *own,
				bool last);
bool mu_plan_adds(const struct mu_plan *plan, size_t l);

/*
 * For devices with their own memory: record forward and backward in pieces whose gradients have
 * about most_bytes (0: any size). A piece is submitted as a whole when its last layer is due:
 * mu_plan_backward_begin submits nothing before that, and mu_plan_backward must not be called. Call
 * before the first forward, after mu_plan_set_resident. _count_pieces: number of recorded pieces,
 * and of layers that cannot be recorded.
 */
enum mu_status mu_plan_set_recorded(struct mu_plan *plan, size_t most_bytes);
void mu_plan_count_pieces(const struct mu_plan *plan, size_t *recorded, size_t *alone);

/*
 * For devices with their own memory, no effect on others: start to copy these samples, and labels,
 * ids and epoch of batch, to the device. Forward of the first layer is their first reader. Call it
 * any time after forward of the previous batch has ended, also during its backward, from any
 * thread. mu_plan_input and batch's arrays must not change until that forward has ended. Without
 * this call forward copies them. pixels: the samples are in mu_plan_input_bytes (batch, c, h, w),
 * with values as pixels defines; NULL: they are in mu_plan_input. _bytes is NULL if the plan cannot
 * read bytes.
 */
enum mu_status mu_plan_send(struct mu_plan *plan, const struct mu_batch *batch,
			    const struct mu_pixels *pixels);
uint8_t *mu_plan_input_bytes(struct mu_plan *plan);
bool mu_plan_is_sent(const struct mu_plan *plan); /* and forward has not begun */
/* Number of convolutions in the plan, and of those computed by Winograd's algorithm, by matrix
 * products, and by engines that a table names, for each phase. */
struct mu_plan_convolutions {
	size_t n[MU_CONVOLUTION_PHASES], winograd[MU_CONVOLUTION_PHASES],
		gemm[MU_CONVOLUTION_PHASES], engines[MU_CONVOLUTION_PHASES];
};
void mu_plan_convolutions(const struct mu_plan *plan, struct mu_plan_convolutions *counts);
/* The keys of layer l, learnable and auxiliary. */
size_t mu_plan_layer_keys(const struct mu_plan *plan, size_t l, const size_t **keys);
/* The keys whose gradients the layer's backward writes: also one that an earlier layer completes
 * (mu_net_tie). */
size_t mu_plan_layer_writes(const struct mu_plan *plan, size_t l, const size_t **keys);
/* Write "convolution + relu" into text; returns text. */
const char *mu_plan_layer_kind(const struct mu_plan *plan, size_t l, char *text, size_t nbytes);
/* "winograd", "direct+sums" with sums for the batch-norm behind; for backward "direct/winograd",
 * the algorithms for the gradients of data and weights.
 * "" for layers other than convolutions, and on devices with one algorithm. */
const char *mu_plan_layer_algorithm(const struct mu_plan *plan, size_t l, bool backward, char *text,
				    size_t nbytes);
/* AUTO: as "" above, or the layer does nothing in that phase. */
enum mu_convolution_algorithm mu_plan_convolution(const struct mu_plan *plan, size_t l,
						  enum mu_convolution_phase phase);
/*
 * Backward in two parts, for asynchronous devices. _begin: submit layer l, last layer first. _left:
 * *left layers, counted from the first, are not done; gradients of layers *left and later are in
 * the flat array. wait: wait until at least one more of the submitted layers is done.
 */
enum mu_status mu_plan_backward_begin(struct mu_plan *plan, size_t l);
enum mu_status mu_plan_backward_left(struct mu_plan *plan, bool wait, size_t *left);
/*
 * For a device with its own memory, in training: from now on forward of the last layer does not
 * wait for the device, so that backward can be submitted before the loss is known. Then
 * mu_plan_results_end waits for forward alone; loss and predictions of the batch are set after it,
 * and not before. Other plans ignore both calls.
 */
void mu_plan_set_results_later(struct mu_plan *plan);
enum mu_status mu_plan_results_end(struct mu_plan *plan);
/* For a batch with a loss scale: was a gradient of a parameter not finite in a backward since the
 * last call? The scale may have been too large. Waits for the device. */
enum mu_status mu_plan_overflowed(struct mu_plan *plan, bool *overflowed);
/*
 * For a device with its own memory and a plan that is no part: from now on forward copies the
 * weights of key k to the device only if versions[k] differs from its value at the last copy (see
 * mu_kv_versions). Without versions, and the first time, forward copies all weights.
 */
void mu_plan_set_versions(struct mu_plan *plan, const uint64_t *versions);
/* For a device with its own memory: from now on, does forward of this plan copy weights to the
 * device, or has another plan of the device done so? Default: true. */
void mu_plan_set_upload(struct mu_plan *plan, bool brings);
/*
 * For a device with its own memory: from now on the device's mirrors of the flat arrays are
 * authoritative (resident). Forward copies no weights, backward copies no gradients back; for
 * mu_plan_backward_left a layer is done as soon as it has been submitted.
 */
void mu_plan_set_resident(struct mu_plan *plan);

/* Time of a layer's forward, or backward, so far. */
struct mu_layer_time {
	size_t calls, samples;
	double seconds;
	double fastest; /* seconds per sample of the fastest call */
};
struct mu_layer_times {
	struct mu_layer_time forward, backward;
};
/* From now on add the times of layer l to times[l]; several plans of a net may share the array.
 * NULL: stop, which is the default. */
void mu_plan_measure(struct mu_plan *plan, struct mu_layer_times *times);
/*
 * Work of a layer, independent of its kernels. flops: 2 per multiply-add of convolutions and fully
 * connected layers, 0 for other layers; backward counts the gradients of weights and, if needed, of
 * the input. Bytes: each array that must be read or written, once, in float32 without padding.
 */
struct mu_layer_cost {
	double flops, sample_bytes; /* per sample */
	double call_bytes;          /* parameters and their gradients */
};
void mu_plan_layer_cost(const struct mu_plan *plan, size_t l, struct mu_layer_cost *forward,
			struct mu_layer_cost *backward);

/* ---- results ---- */

/* Targets of a sample; 0: a part without the loss. */
size_t mu_plan_targets(const struct mu_plan *plan);
/* After forward: add the batch to the sums of the net's loss (muster/metrics.h). k: of --top-k. */
void mu_plan_metrics(struct mu_plan *plan, size_t k, struct mu_metrics *m);
/* The probabilities as the device has them, if those are rows, (n h w, c), one for each label; else
 * NULL. */
const float *mu_plan_rows(const struct mu_plan *plan);
/* For error messages: the first layer whose output or parameter gradient is not finite; NULL if
 * there is none. */
const char *mu_plan_find_nonfinite(struct mu_plan *plan);

/* The same where `laid` points to the slice itself, for arrays that hold only some slices. */
enum mu_status mu_plan_key_from_plain(const struct mu_plan *plan, size_t k, const float *plain,
				      float *laid);
enum mu_status mu_plan_key_to_plain(const struct mu_plan *plan, size_t k, const float *laid,
				    float *plain);

#endif
