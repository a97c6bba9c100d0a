/* SPDX-License-Identifier: Apache-2.0 */
/* Updates by the caller, element by element (muster/update.h): the constants of each element. Keys
 * with equal rule, decay and rate form one class. */
#include <string.h>

#include "object.h"

static bool are_alike(const struct key *a, const struct key *b)
{
	if (a->fixed || b->fixed)
		return a->fixed && b->fixed;
	if (a->rule == MU_SLICE_AVERAGE || b->rule == MU_SLICE_AVERAGE)
		return a->rule == b->rule && a->momentum == b->momentum;
	return a->rule == b->rule && a->wd == b->wd && a->lr_mult == b->lr_mult;
}

/* The first key of a class. */
static size_t first_of(const struct mu_optim *o, size_t class)
{
	size_t k = 0;

	while (o->keys[k].class != class)
		k++;
	return k;
}

void mu_optim_classify(struct mu_optim *o)
{
	o->n_classes = 0;
	for (size_t k = 0; k < o->n_keys; k++) {
		size_t c = 0;

		while (c < o->n_classes && !are_alike(&o->keys[k], &o->keys[first_of(o, c)]))
			c++;
		o->keys[k].class = c;
		o->n_classes += c == o->n_classes;
	}
}

bool mu_optim_is_by_element(const struct mu_optim *o, char *why, size_t nbytes)
{
	const char *name = o->rule->name;

	if (o->n_rounds > 0)
		snprintf(why, nbytes, "%s%s needs norms over whole keys", name,
			 o->clips_norm ? " with a limit of the norm" : "");
	else if (!o->rule->element)
		snprintf(why, nbytes, "%s is not written for one element", name);
	else if (o->n_classes > MU_ELEMENT_CLASSES)
		snprintf(why, nbytes, "%zu kinds of keys, by rate and decay, are more than %d",
			 o->n_classes, MU_ELEMENT_CLASSES);
	else
		return true;
	return false;
}

void mu_optim_classes(const struct mu_optim *o, size_t p, unsigned char *classes)
{
	const struct piece *piece = &o->pieces[p];

	for (size_t i = 0; i < piece->n_segments; i++) {
		const struct segment *s = &o->segments[piece->first_segment + i];

		memset(classes + s->from / MU_ELEMENT_RUN, (int)o->keys[s->key].class,
		       (s->to - s->from) / MU_ELEMENT_RUN);
	}
}

static struct mu_element element_of(const struct mu_optim *o, const struct piece *piece,
				    const struct key *key)
{
	float *none[MU_MAX_STATES] = {NULL};
	struct mu_update u;

	if (key->fixed)
		return (struct mu_element){.kind = MU_ELEMENT_KEEP};
	if (key->rule == MU_SLICE_AVERAGE) {
		u = mu_optim_average_of(piece, key);
		return mu_rule_average_element(&u);
	}
	u = mu_optim_update_of(o, piece, key, 0, none);
	return o->rule->element(&u);
}

size_t mu_optim_elements(const struct mu_optim *o, size_t p,
			 struct mu_element of[MU_ELEMENT_CLASSES])
{
	const struct piece *piece = &o->pieces[p];

	if (!piece->active)
		return 0;
	for (size_t c = 0; c < o->n_classes; c++)
		of[c] = element_of(o, piece, &o->keys[first_of(o, c)]);
	return o->n_classes;
}
