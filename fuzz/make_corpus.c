/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the corpus that the fuzzers start from: small files of every kind, right ones and some
 * that are wrong. make_corpus FOLDER, e.g. fuzz/corpus; the folders in it must be there. Built by
 * make check-programs, run by hand when a format changes.
 */
#include <muster/records.h>
#include <muster/storage.h>

#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, H5_MAX = 1 << 16, N = 3 };

static const char *folder;
static int failed;

static const char *path_of(const char *name)
{
	static char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	mu_trace_print(stderr, what);
	failed = 1;
}

static void put(const char *name, const void *data, size_t n)
{
	FILE *f = fopen(path_of(name), "wb");

	need(f && (n == 0 || fwrite(data, 1, n, f) == n), name);
	need(f && fclose(f) == 0, name);
}

static void put_text(const char *name, const char *text)
{
	put(name, text, strlen(text));
}

static const uint8_t image[] = {0xff, 0xd8, 0xff, 0xe0, 0x0a, 0x23, 0xd7, 0xce, 0x0a, 0x23,
				0xd7, 0xce, 1,    2,    3,    4,    5,    0xff, 0xd9};

static struct mu_record make_record(size_t i, size_t n_labels)
{
	static const float labels[] = {0, 1, 2, 3, 4};

	return (struct mu_record){.data = image + i,
				  .n = sizeof image - i,
				  .id = 5 * i,
				  .n_labels = n_labels,
				  .labels = labels + i};
}

static void make_rec(const char *name, size_t n_labels)
{
	struct mu_recordio_writer *w;
	struct mu_record_buffer buffer = {0};
	const uint8_t *payload;
	size_t n;

	if (mu_recordio_create(&w, path_of(name), NULL) != MU_OK) {
		need(false, name);
		return;
	}
	for (size_t i = 0; i < N; i++) {
		struct mu_record record = make_record(i, n_labels);

		need(mu_record_pack(&record, &buffer, &payload, &n) == MU_OK, name);
		need(mu_recordio_write(w, i, payload, n) == MU_OK, name);
	}
	need(mu_recordio_finish(w, true) == MU_OK, name);
	mu_record_buffer_release(&buffer);
}

/* Without checksums a fuzzer comes further. */
static void forget_checksums(const char *name)
{
	static uint8_t bytes[H5_MAX];
	FILE *f = fopen(path_of(name), "rb");
	size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;

	if (f)
		fclose(f);
	for (size_t i = 0; i + 8 < n; i++)
		if (memcmp(bytes + i, "checksum", 8) == 0)
			bytes[i] = 'x';
	put(name, bytes, n);
}

static void make_h5(const char *name, bool raw, size_t n_labels)
{
	static const char *const names[] = {"ant", "bee", "cow", "dog", "eel"};
	struct mu_data_file_config config = {.kind = raw ? MU_RECORD_RAW : MU_RECORD_ENCODED,
					     .shape = MU_SAMPLE(1, 2, 3),
					     .class_names = n_labels == 1 ? names : NULL,
					     .classes = 5,
					     .creator = "make_corpus"};
	struct mu_data_writer *w;

	if (mu_data_file_create(&w, path_of(name), &config) != MU_OK) {
		need(false, name);
		return;
	}
	for (size_t i = 0; i < N; i++) {
		struct mu_record record = make_record(i, n_labels);

		if (raw)
			record.n = 6;
		need(mu_data_file_write(w, &record) == MU_OK, name);
	}
	need(mu_data_file_finish(w, true) == MU_OK, name);
}

static void make_index(void)
{
	char text[1000] = "", *at = text;

	for (int i = 0; i < 24; i++)
		at += snprintf(at, sizeof text - (size_t)(at - text), "%d\t%d\n", i, 64 * i);
	put_text("index/all", text);
	put_text("index/wrong-line", "0\t0\nx\t64\n");
	put_text("index/one", "0 0\r\n\n");
	put_text("index/twice", "0\t0\n1\t0\n");
	put_text("index/large", "18446744073709551615\t18446744073709551612\n");
}

static void make_list(void)
{
	char lines[2001] = "";

	put_text("list/one", "0\t0.000000\tant/1.jpg\n");
	put_text("list/more", "7\t1\t2.5\t-3e1\ta b/c.png\r\n\n18446744073709551615\t0x1p3\tx");
	put_text("list/no-label", "0\tant/1.jpg\n");
	put_text("list/no-number", "x\t1\tant/1.jpg\n1\t1\t\n");
	for (size_t i = 0; i + 1 < sizeof lines; i += 2)
		memcpy(lines + i, "x\r", 3);
	put_text("list/returns", lines);
}

static void make_idx(void)
{
	static const uint8_t plain[] = {3, 0, 0, 8, 3, 0, 0, 0, 1, 0, 0,
					0, 2, 0, 0, 0, 2, 1, 2, 3, 4};
	static const uint8_t huge[] = {2, 0, 0, 8, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0xff, 0xff, 9};
	static const uint8_t labels[] = {1, 0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9};
	/* The same labels by gzip -n. */
	static const uint8_t zip[] = {1,    0x1f, 0x8b, 8,    0,    0,    0,    0,    0,    0, 3,
				      0x63, 0x60, 0xe0, 0x60, 0x64, 0x60, 0x60, 0x60, 0x66, 0, 0};

	put("idx/plain", plain, sizeof plain);
	put("idx/huge", huge, sizeof huge);
	put("idx/labels", labels, sizeof labels);
	put("idx/gzip", zip, sizeof zip);
}

static void make_text(void)
{
	put_text("text/words", "the cat sat on\nthe mat\n\n  the end \tof <unk> it\r\nno break");
	put_text("text/vocabulary", "<eos>\nthe\ncat\n\\x1b\\\\\n<unk>\n");
	put_text("text/characters", "a\nb\n\\n\n \n<unk>\n");
	put_text("text/twice", "<eos>\nthe\nthe\n");
	put_text("text/blanks", " \n\n\t\n");
}

static void make_tokens(void)
{
	static uint8_t bytes[1024 + 6] = {0x88, 0xd8, 0x34, 0x01, 1, 0, 0, 0, 3};

	put_text("tokens/tokenizer",
		 "{\"added_tokens\": [{\"id\": 5, \"content\": \"<e>\", \"special\": true}], "
		 "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}, "
		 "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, "
		 "\"\\u0120\": 2, \"ab\": 3, \"\\u0120ab\": 4}, \"merges\": [\"a b\", "
		 "[\"\\u0120\", \"ab\"]]}}");
	put_text("tokens/vocabulary", "{\"a\": 0, \"b\": 1, \"ab\": 2, \"<|endoftext|>\": 3}");
	put_text("tokens/text", "don't  caf\xc3\xa9 12\xd9\xa3\r\n\n ab ab \xff\xf0\x9f\x98\x80");
	put("tokens/file", bytes, sizeof bytes);
	put("tokens/short", bytes, 1027);
}

static void make_cifar(void)
{
	static uint8_t bytes[2 * 3074];

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = i % 3073 == 0 ? (uint8_t)(i / 3073) : (uint8_t)(i * i / 999);
	put("cifar/ten", bytes, 2 * 3073);
	put("cifar/hundred", bytes, 3074);
	put("cifar/short", bytes, 100);
}

/* Two arrays of two numbers each: of MXNet 0.12 and later, and as before 0.11 had it. */
static void make_params(void)
{
	static const uint8_t new[] = {
		0x12, 1,    0,    0,    0, 0,    0,    0,    0,    0,    0,   0,   0,   0,
		0,    0,    2,    0,    0, 0,    0,    0,    0,    0, /* list */
		0xc9, 0xfa, 0x93, 0xf9, 0, 0,    0,    0,    1,    0,    0,   0,   2,   0,
		0,    0,    0,    0,    0, 0, /* float32 */
		1,    0,    0,    0,    0, 0,    0,    0,    0,    0,    0,   0,   0,   0,
		0x80, 0x3f, 0,    0,    0, 0x40, 0xc9, 0xfa, 0x93, 0xf9, 0,   0,   0,   0,
		2,    0,    0,    0,    2, 0,    0,    0,    0,    0,    0,   0, /* float16 */
		1,    0,    0,    0,    0, 0,    0,    0,    1,    0,    0,   0,   0,   0,
		0,    0,    2,    0,    0, 0,    0,    0x3c, 0,    0x40, 2,   0,   0,   0,
		0,    0,    0,    0,    5, 0,    0,    0,    0,    0,    0,   0,   'a', 'r',
		'g',  ':',  'w', /* names */
		5,    0,    0,    0,    0, 0,    0,    0,    'a',  'u',  'x', ':', 'm'};
	static const uint8_t old[] = {
		0x12, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0,    0,   0,   0,   0,    1,  0, 0, 0,
		0,    0, 0, 0, 2, 0, 0, 0, 1, 0, 0,    0,    2,   0,   0,   0,    1,  0, 0, 0,
		0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0,   0,   0,   0x40, 1,  0, 0, 0,
		0,    0, 0, 0, 5, 0, 0, 0, 0, 0, 0,    0,    'a', 'r', 'g', ':',  'w'};

	put("params/new", new, sizeof new);
	put("params/old", old, sizeof old);
	put("params/short", new, sizeof new - 30);
}

static enum mu_status give_numbers(void *context, const struct mu_params_array *array, float *data)
{
	(void)context;
	for (size_t i = 0; i < mu_params_elements(array); i++)
		data[i] = (float)i;
	return MU_OK;
}

static void make_safetensors(void)
{
	static const struct mu_params_array arrays[] = {{"h.0.attn.c_attn.weight", 2, {2, 3}},
							{"h.0.attn.c_attn.bias", 1, {3}}};
	static const char overlap[] =
		"\x70\0\0\0\0\0\0\0"
		"{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]},"
		"\"b\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[2,10]}}    0123456789";

	need(mu_safetensors_write(path_of("safetensors/two"), 2, arrays, give_numbers, NULL) ==
		     MU_OK,
	     "safetensors/two");
	put_text("safetensors/index", "{\"weight_map\": {\"a\": \"a.safetensors\"}}");
	put("safetensors/overlap", overlap, sizeof overlap - 1);
}

#define NPY(version, length, descr, order) \
	"\x93NUMPY" version "\0" length "{'descr': '" descr "', 'fortran_order': " order \
	", 'shape': (2, 3), }\n"

/* The first byte says which format, see target_rows.c. */
static void make_rows(void)
{
	static const char plain[] = "\x42" NPY("\1", "\74\0", "|u1", "False") "\1\2\3\4\5\6";
	static const char fortran[] =
		"\xc0" NPY("\2", "\73\0\0\0", ">i2", "True") "\0\1\0\4\0\2\0\5\0\3\0\6";
	static const char huge[] = "\0" NPY("\3", "\xf0\xff\xff\xff", "<f8", "False") "12345678";
	/* Members x and y, y deflated. */
	static const char npz[] =
		"\1PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\114\0\0\0\114\0\0\0\5\0\0\0x.npy" NPY(
			"\1", "\74\0", "|u1", "False") "\1\2\3\4\5\6";
	static const char directory[] =
		"PK\1\2\24\0\24\0\0\0\0\0\0\0\0\0\0\0\0\0\114\0\0\0\114\0\0\0\5\0\0\0\0\0\0\0"
		"\0\0\0\0\0\0\0\0\0\0x.npyPK\5\6\0\0\0\0\1\0\1\0\63\0\0\0\157\0\0\0\0\0";
	uint8_t bytes[1024], *const file = bytes + 1;
	const size_t n = sizeof npz - 1;
	uint32_t checksum = mu_checksum(0, npz + 1 + 35, 0114);

	put("rows/plain", plain, sizeof plain - 1);
	put("rows/fortran", fortran, sizeof fortran - 1);
	put("rows/huge", huge, sizeof huge - 1);
	memcpy(bytes, npz, n);
	memcpy(bytes + n, directory, sizeof directory - 1);
	for (int i = 0; i < 4; i++, checksum >>= 8)
		file[n - 1 + 16 + (size_t)i] = (uint8_t)checksum;
	put("rows/npz", bytes, n + sizeof directory - 1);
	put_text("rows/csv", "\x02" "a,b,\"the price\"\r\n1,2.5,-3e-2\r\n4,5,6\r\n\r\n");
	put_text("rows/bad", "\x80" "# by hand\n1;2,5;3\n4;5\n");
}

/* A file as small as HDF5 makes them. */
static void make_arrays(void)
{
	static const size_t dims[] = {2, 3};
	static const float data[6] = {1, 2, 3, 4, 5, 6};
	struct mu_array_file *f;

	need(mu_array_file_create(&f, path_of("arrays/plain")) == MU_OK, "arrays/plain");
	need(f && mu_array_file_set_text(f, "format", "muster checkpoint") == MU_OK, "a text");
	need(f && mu_array_file_write(f, "arg/w", 2, dims, data) == MU_OK, "an array");
	need(mu_array_file_close(f, true) == MU_OK, "arrays/plain");
}

/* A group with more arrays than fit its header, and the same with a damaged heap of their names. */
static void make_dense(void)
{
	static const size_t dims[] = {1};
	static const float data[1] = {1};
	struct mu_array_file *f;
	char name[32], bytes[1 << 16];
	size_t n = 0;
	FILE *in;

	need(mu_array_file_create(&f, path_of("arrays/dense")) == MU_OK, "arrays/dense");
	for (int i = 0; f && i < 12; i++) {
		snprintf(name, sizeof name, "arg/layer%d_weight", i);
		need(mu_array_file_write(f, name, 1, dims, data) == MU_OK, "an array");
	}
	need(mu_array_file_close(f, true) == MU_OK, "arrays/dense");
	in = fopen(path_of("arrays/dense"), "rb");
	if (in) {
		n = fread(bytes, 1, sizeof bytes, in);
		fclose(in);
	}
	for (size_t i = 0; i + 200 < n; i++)
		if (memcmp(bytes + i, "FRHP", 4) == 0) {
			bytes[i + 6] ^= 0x05;
			put("arrays/dense-heap", bytes, n);
			bytes[i + 6] ^= 0x05;
		} else if (memcmp(bytes + i, "FHDB", 4) == 0) {
			bytes[i + 25] ^= 0x04;
			put("arrays/dense-block", bytes, n);
			bytes[i + 25] ^= 0x04;
		}
}

static uint8_t tar[8192];
static size_t tar_n = 1;

/* A member; checksums are made by the target. */
static void tar_add(const char *name, const void *bytes, size_t n, char type)
{
	uint8_t *h = tar + tar_n;

	memcpy(h, name, strlen(name));
	snprintf((char *)h + 124, 12, "%011zo", n);
	h[156] = (uint8_t)type;
	memcpy(h + 257, "ustar", 6);
	memcpy(h + 512, bytes, n);
	tar_n += 1024;
}

/* The first byte: see target_tar.c. */
static void put_tar(const char *name, uint8_t first)
{
	tar[0] = first;
	put(name, tar, tar_n + 1024);
	memset(tar, 0, sizeof tar);
	tar_n = 1;
}

static void make_tar(void)
{
	static const char name[] = "a/long.name.of.GNU/1.jpg";

	tar_add("a/", "", 0, '5');
	tar_n -= 512;
	tar_add("a/1.jpg", image, sizeof image, '0');
	tar_add("a/1.cls", "7\n", 2, '0');
	tar_add("a/1.json", "{}", 2, '0');
	tar_add("b.jpeg", image, sizeof image, '0');
	tar_add("b.cls", "+3", 2, '0');
	put_tar("tar/plain", 1);
	tar_add("././@LongLink", name, sizeof name, 'L');
	tar_add("a/long", image, sizeof image, '0');
	tar_add("x", "12 size=0019\n11 path=b.x\n", 25, 'x');
	tar_add("b", image, 1, '0');
	tar_add("g", "9 path=a\n", 9, 'g');
	put_tar("tar/names", 3);
	tar_add("1.cls", "x", 1, '0');
	tar_add("1.jpg", image, sizeof image, 'S');
	put_tar("tar/bad", 1);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_corpus FOLDER\n");
		return 2;
	}
	folder = argv[1];
	make_rec("rec/one-label", 1);
	make_rec("rec/two-labels", 2);
	put_text("rec/text", "this is no file of records..");
	make_index();
	make_list();
	make_idx();
	make_text();
	make_tokens();
	make_cifar();
	make_params();
	make_safetensors();
	make_rows();
	make_tar();
	make_arrays();
	make_dense();
	make_h5("data_file/encoded", false, 1);
	make_h5("data_file/free", false, 1);
	forget_checksums("data_file/free");
	make_h5("data_file/raw", true, 2);
	forget_checksums("data_file/raw");
	return failed;
}
