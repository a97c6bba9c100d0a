/* SPDX-License-Identifier: Apache-2.0 */
/* What cuDNN's LSTM needs: sequences by steps, its weight space. */
#ifndef DEVICE_CUDA_KERNELS_LSTM_H
#define DEVICE_CUDA_KERNELS_LSTM_H

#include "numbers.h"

/* Place of step t of channel k of a sample in the tensor. */
CUDA_FUNCTION size_t step_place(const struct cuda_steps *a, size_t s, size_t k, size_t t)
{
	return a->last ? (s * a->steps + t) * a->c + k : (s * a->c + k) * a->steps + t;
}

CUDA_FUNCTION void to_steps_at(const struct cuda_steps *a, size_t i)
{
	const size_t k = i % a->c, s = i / a->c % a->samples, t = i / (a->c * a->samples);

	set_number(a->to, a->type, i, number_at(a->from, a->type, step_place(a, s, k, t)));
}

CUDA_FUNCTION void from_steps_at(const struct cuda_steps *a, size_t i)
{
	const size_t s = i / (a->steps * a->c);
	const size_t t = a->last ? i / a->c % a->steps : i % a->steps;
	const size_t k = a->last ? i % a->c : i / a->steps % a->c;

	set_number(a->to, a->type, i, number_at(a->from, a->type, (t * a->samples + s) * a->c + k));
}

/* Element *i of all parameters: find its parameter, and its place in the space. */
CUDA_FUNCTION int lstm_place(const struct cuda_lstm_space *a, size_t *i, size_t *place)
{
	size_t gate = a->units * a->width[0];
	int p = 0;

	while (*i >= CUDA_LSTM_GATES * gate) {
		*i -= CUDA_LSTM_GATES * gate;
		gate = a->units * a->width[++p];
	}
	*place = a->at[p][*i / gate] + *i % gate;
	return p;
}

CUDA_FUNCTION void lstm_weights_at(const struct cuda_lstm_space *a, size_t i)
{
	size_t place;
	const int p = lstm_place(a, &i, &place);

	set_number(a->space, a->type, place, a->params[p][i]);
}

CUDA_FUNCTION void lstm_gradients_at(const struct cuda_lstm_space *a, size_t i)
{
	size_t place;
	const int p = lstm_place(a, &i, &place);
	const float v = number_at(a->space, a->type, place);

	a->params[p][i] = a->adds ? a->params[p][i] + v : v;
}

#endif
