/* SPDX-License-Identifier: Apache-2.0 */
/* memory: the interface of devices with memory of their own; part of op.h. */
#ifndef DEVICE_MEMORY_H
#define DEVICE_MEMORY_H

#include <muster/base.h>
#include <muster/update.h>

struct mu_device;

/* An element-wise update of n elements (update.h). Run i of MU_ELEMENT_RUN elements uses the
 * constants of[classes[i]]. Arrays are in device memory; `of` is copied. */
struct mu_device_update {
	float *weights;
	const float *gradients;
	float *states[3];             /* NULL beyond the rule's number of states */
	const unsigned char *classes; /* class of every run */
	const struct mu_element *of;
	size_t n_classes; /* at most MU_ELEMENT_CLASSES */
	size_t n;
};

struct mu_device_sum {
	float *out;
	const float *const *in; /* n_in arrays; the pointers are copied */
	size_t n_in, n;
};

/* A buffer for data that a step needs from the host: copied from `host` (memory from alloc_host) to
 * `data` (device memory), concurrently with the device's work. */
struct mu_feed {
	void *host, *data;
	void *impl;
};

/* Values of bytes: (byte - mean) / std, for each of up to three channels. */
struct mu_pixels {
	float mean[3], std[3];
};

struct mu_tensor;
struct mu_op;

/*
 * Memory of the device. All that operations read and write is there: tensors, parameters and their
 * gradients, workspaces, scratch; except what struct mu_batch points to. Layouts convert between
 * memory of either kind. The device executes work in order and asynchronously: functions return
 * before the work is done, and a later call may return its error.
 */
struct mu_device_memory {
	/* Zeroed. MU_ERR_MEMORY reports the size of the memory. */
	enum mu_status (*alloc)(struct mu_device *device, void **out, size_t nbytes,
				const char *what);
	void (*free)(struct mu_device *device, void *p);
	/* Host memory with fast copies to and from the device (pinned), zeroed. */
	enum mu_status (*alloc_host)(struct mu_device *device, void **out, size_t nbytes,
				     const char *what);
	void (*free_host)(struct mu_device *device, void *p);
	/*
	 * Copies, after all work submitted so far. Work submitted later sees the data of an upload;
	 * `from` must not change until the copy is done. Either address may be in the memory of
	 * another device of the kind. A download runs concurrently with work submitted later, which
	 * must not write its source. Both are done when a later `mark` is reached.
	 */
	enum mu_status (*upload)(struct mu_device *device, void *to, const void *from,
				 size_t nbytes);
	enum mu_status (*download)(struct mu_device *device, void *to, const void *from,
				   size_t nbytes);
	/*
	 * feed_send starts to copy bytes [from, to). Any thread may call it while others submit
	 * work. All readers of the previous feed must be done. Work submitted after feed_take waits
	 * for the copy. The host's bytes must not change until then.
	 */
	enum mu_status (*feed_open)(struct mu_device *device, struct mu_feed *feed, size_t nbytes,
				    const char *what);
	void (*feed_close)(struct mu_device *device, struct mu_feed *feed);
	enum mu_status (*feed_send)(struct mu_device *device, struct mu_feed *feed, size_t from,
				    size_t to);
	enum mu_status (*feed_take)(struct mu_device *device, struct mu_feed *feed);
	/* Write a tensor, in its layout, from plain values in device memory: float32, or bytes if
	 * pixels defines their values. */
	enum mu_status (*lay)(struct mu_device *device, const struct mu_tensor *out,
			      const void *plain, const struct mu_pixels *pixels);
	/*
	 * Work that one thread submits between record_begin and record_end is recorded instead of
	 * executed. replay executes it with the same arrays and arguments, any number of times.
	 * After a failed recording call record_end as well (but not after a failed record_begin);
	 * nothing else is lost. Run the kernels once before, so that libraries have loaded them.
	 * can_record: forward, or backward, of the operation leaves no work to the host.
	 */
	bool (*can_record)(const struct mu_op *op, bool backward);
	enum mu_status (*record_begin)(struct mu_device *device);
	enum mu_status (*record_end)(struct mu_device *device, void **recording);
	enum mu_status (*replay)(struct mu_device *device, void *recording);
	void (*free_recording)(struct mu_device *device, void *recording);
	/* A mark after all work submitted so far, downloads included. */
	enum mu_status (*mark)(struct mu_device *device, uint64_t *mark);
	/* Is all work before the mark done? wait: wait until it is. */
	enum mu_status (*reach)(struct mu_device *device, uint64_t mark, bool wait, bool *reached);
	/*
	 * The device array that stands for n floats of the host, such as the flat array of weights.
	 * All calls with one host address return the same array until each has called unmirror.
	 * Copies nothing.
	 */
	enum mu_status (*mirror)(struct mu_device *device, float **out, float *host, size_t n);
	void (*unmirror)(struct mu_device *device, float *mirror);
	/* x[i] *= factor for n floats; sets *found, in device memory, to 1 if a result is not
	 * finite. */
	enum mu_status (*scale)(struct mu_device *device, float *x, size_t n, float factor,
				uint32_t *found);
	/* For libraries that submit work of their own: enter makes the device current in the
	 * calling thread; stream returns its CUstream. */
	enum mu_status (*enter)(struct mu_device *device);
	void *(*stream)(struct mu_device *device);
	/*
	 * For stores with arrays on the device, on a CUstream of their own: update the weights; out
	 * = ((in[0] + in[1]) + in[2]) + ..., n_in >= 2, where out may be one of the first 16 of in.
	 */
	enum mu_status (*update)(struct mu_device *device, void *stream,
				 const struct mu_device_update *update);
	enum mu_status (*sum)(struct mu_device *device, void *stream,
			      const struct mu_device_sum *sum);
};

#endif
