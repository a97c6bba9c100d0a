/* SPDX-License-Identifier: Apache-2.0 */
/* Work that threads share. */
#include <muster/base.h>

size_t mu_share_parts(const struct mu_share *share)
{
	return share->n > 1 ? share->n : 1;
}

enum mu_status mu_share_run(const struct mu_share *share, mu_part_fn *part, void *of)
{
	if (share->n > 1)
		return share->run(share->context, part, of);
	part(of, 0);
	return MU_OK;
}
