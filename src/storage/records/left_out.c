/* SPDX-License-Identifier: Apache-2.0 */
/* What a listing of folders leaves out: counted, with the first name of each kind. */
#include <muster/records.h>

#include <stdio.h>
#include <string.h>

/* One and several of them. */
static const char *const texts[MU_LEFT_KINDS][2] = {
	[MU_LEFT_OTHER] = {"file of another kind", "files of other kinds"},
	[MU_LEFT_HIDDEN] = {"hidden file or folder", "hidden files or folders"},
	[MU_LEFT_OUTSIDE] = {"image in no folder of a class", "images in no folder of a class"},
	[MU_LEFT_FOLDER] = {"folder", "folders"},
	[MU_LEFT_EMPTY] = {"class without images", "classes without images"},
};

bool mu_left_hidden(const char *path)
{
	for (size_t n; *path; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		if (*path == '.' && n > 1 && !(n == 2 && path[1] == '.'))
			return true;
	}
	return false;
}

void mu_left_out_add(struct mu_left_out *left, enum mu_left_kind kind, const char *name)
{
	if (left->n[kind]++ == 0)
		mu_text_show(left->first[kind], sizeof left->first[kind], name);
}

const char *mu_left_out_text(const struct mu_left_out *left, char *text, size_t nbytes)
{
	size_t used = 0;

	*text = '\0';
	for (int k = 0; k < MU_LEFT_KINDS && used < nbytes; k++) {
		const size_t n = left->n[k];

		if (n > 0)
			used += (size_t)snprintf(text + used, nbytes - used, "%s%zu %s (%s%s)",
						 used ? ", " : "", n, texts[k][n > 1],
						 n > 1 ? "the first is " : "", left->first[k]);
	}
	return text;
}
