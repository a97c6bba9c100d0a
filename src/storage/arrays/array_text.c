/* SPDX-License-Identifier: Apache-2.0 */
/* What needs no HDF5: the first bytes of an array file, and a text of it that may be missing. */
#include <string.h>

#include <muster/base.h>
#include <muster/storage.h>

enum mu_status mu_array_file_is(const char *path, bool *is)
{
	enum mu_status st = MU_OK;
	char head[8] = "";
	FILE *file = NULL;

	MU_TRY(mu_stream_open(&file, path));
	*is = fread(head, 1, sizeof head, file) == sizeof head &&
	      memcmp(head, "\x89HDF\r\n\x1a\n", sizeof head) == 0;
	fclose(file);
out:
	return st;
}

enum mu_status mu_array_file_find_text(struct mu_array_file *f, const char *attribute, char *text,
				       size_t nbytes)
{
	enum mu_status st = MU_OK;
	size_t n = 0;
	bool there;

	text[0] = '\0';
	MU_TRY(mu_array_file_has_text(f, attribute, &there));
	if (there)
		MU_TRY(mu_array_file_text_bytes(f, attribute, &n));
	if (there && n <= nbytes)
		MU_TRY(mu_array_file_get_text(f, attribute, text, nbytes));
out:
	return st;
}

enum mu_status mu_array_file_read_text(struct mu_array_file *f, const char *attribute, char **text)
{
	enum mu_status st = MU_OK;
	size_t nbytes;
	bool there;

	*text = NULL;
	MU_TRY(mu_array_file_has_text(f, attribute, &there));
	if (!there)
		goto out;
	MU_TRY(mu_array_file_text_bytes(f, attribute, &nbytes));
	MU_TRY(MU_ALLOC(*text, nbytes + 1, attribute));
	MU_TRY(mu_array_file_get_text(f, attribute, *text, nbytes + 1));
out:
	return st;
}
