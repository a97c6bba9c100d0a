/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --tensorboard: event files, which are TFRecord files of Event messages (event.proto). A record
 * is, in little endian: length of the message (64 bits), masked CRC-32C of these 8 bytes, the
 * message, masked CRC-32C of it. Source: tensorflow/core/lib/io/record_writer.cc and
 * lib/hash/crc32c.h.
 */
#include "scalars.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <muster/base.h>

#include "event.pb-c.h"

enum { PATH_BYTES = 4096, TAG_BYTES = 96, HEAD_BYTES = 12, MOST_FILES = 100 };

struct report_events {
	FILE *file;
	char path[PATH_BYTES];
	uint32_t table[256]; /* of CRC-32C */
	uint8_t *packed;     /* of the longest message so far; owned */
	size_t room;
};

/* ---- TFRecord ---- */

/* CRC-32C, Castagnoli's polynomial 0x1EDC6F41, bits reversed: RFC 3720, appendix B.4. */
static void make_table(uint32_t table[256])
{
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78u : 0);
	}
}

static uint32_t masked_crc(const struct report_events *e, const uint8_t *data, size_t n)
{
	uint32_t crc = 0xffffffffu;

	for (size_t i = 0; i < n; i++)
		crc = e->table[(crc ^ data[i]) & 0xff] ^ crc >> 8;
	crc = ~crc;
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_little(uint8_t *out, uint64_t value, int nbytes)
{
	for (int i = 0; i < nbytes; i++)
		out[i] = (uint8_t)(value >> 8 * i);
}

static enum mu_status write_event(struct report_events *e, const Mu__Event *event)
{
	enum mu_status st = MU_OK;
	const size_t n = mu__event__get_packed_size(event);
	uint8_t head[HEAD_BYTES], tail[4];

	if (n > e->room) {
		mu_free(e->packed);
		e->room = 0;
		MU_TRY(MU_ALLOC(e->packed, n, "an event"));
		e->room = n;
	}
	mu__event__pack(event, e->packed);
	put_little(head, n, 8);
	put_little(head + 8, masked_crc(e, head, 8), 4);
	put_little(tail, masked_crc(e, e->packed, n), 4);
	fwrite(head, sizeof head, 1, e->file);
	fwrite(e->packed, n, 1, e->file);
	fwrite(tail, sizeof tail, 1, e->file);
	if (fflush(e->file) != 0 || ferror(e->file))
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", e->path, strerror(errno));
out:
	return st;
}

/* ---- events ---- */

enum mu_status mu_report_events_check(const struct conf *v)
{
	(void)v;
	return MU_OK;
}

/* TensorBoard reads files with "tfevents" in their name, in the order of the names. A file is new:
 * no link that somebody has laid is followed. */
static enum mu_status make_file(struct report_events *e, const char *folder,
				const struct timespec *now)
{
	enum mu_status st = MU_OK;
	char host[64] = "";

	gethostname(host, sizeof host - 1);
	for (int i = 0; !e->file && i < MOST_FILES; i++) {
		snprintf(e->path, sizeof e->path, "%s/events.out.tfevents.%010lld.%s.%ld.%d",
			 folder, (long long)now->tv_sec, host, (long)getpid(), i);
		e->file = fopen(e->path, "wxe");
		if (!e->file && errno != EEXIST)
			break;
	}
	if (!e->file)
		MU_FAIL(MU_ERR_IO, "--tensorboard %s: no file can be made there: %s", folder,
			strerror(errno));
out:
	return st;
}

enum mu_status mu_report_events_open(struct report_events **out, const char *folder)
{
	enum mu_status st = MU_OK;
	static char version[] = "brain.Event:2";
	struct report_events *e;
	Mu__Event event = MU__EVENT__INIT;
	struct timespec now;

	st = mu_folder_make(folder);
	if (st != MU_OK)
		mu_trace_prefix("--tensorboard %s: ", folder);
	MU_TRY(st);
	MU_TRY(MU_ALLOC(*out, 1, "event file"));
	e = *out;
	make_table(e->table);
	clock_gettime(CLOCK_REALTIME, &now);
	MU_TRY(make_file(e, folder, &now));
	event.has_wall_time = 1;
	event.wall_time = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
	event.file_version = version;
	MU_TRY(write_event(e, &event));
out:
	return st;
}

enum mu_status mu_report_events_put(struct report_events *e, const struct report_numbers *record)
{
	char tags[SCALAR_MAX][TAG_BYTES];
	Mu__Summary__Value values[SCALAR_MAX], *list[SCALAR_MAX];
	Mu__Summary summary = MU__SUMMARY__INIT;
	Mu__Event event = MU__EVENT__INIT;

	for (size_t i = 0; i < record->n; i++) {
		size_t at = summary.n_value;

		if (isnan(record->values[i]))
			continue;
		snprintf(tags[at], TAG_BYTES, "%s/%s", record->event, record->names[i]);
		mu__summary__value__init(&values[at]);
		values[at].tag = tags[at];
		values[at].has_simple_value = 1;
		values[at].simple_value = (float)record->values[i];
		list[summary.n_value++] = &values[at];
	}
	summary.value = list;
	event.has_wall_time = event.has_step = 1;
	event.wall_time = record->time;
	event.step = (int64_t)record->step;
	event.summary = &summary;
	return write_event(e, &event);
}

void mu_report_events_close(struct report_events *e)
{
	if (!e)
		return;
	if (e->file)
		fclose(e->file);
	mu_free(e->packed);
	mu_free(e);
}
