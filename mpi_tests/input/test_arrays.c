/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Arrays in .npy and .npz files: every type and order of numbers, targets, and every kind of
 * bad file. */
#include <zlib.h>

#include "../lib/array_files.h"

enum { FILE_BYTES = 1 << 12 };

/* A .npy file into `out`: its bytes. */
static size_t make_npy(uint8_t *out, int version, const char *header, const void *data,
		       size_t nbytes)
{
	const size_t length = strlen(header), before = version == 1 ? 10 : 12;

	memcpy(out, "\x93NUMPY", 6);
	out[6] = (uint8_t)version;
	out[7] = 0;
	for (size_t i = 8; i < before; i++)
		out[i] = (uint8_t)(length >> 8 * (i - 8));
	memcpy(out + before, header, length);
	memcpy(out + before + length, data, nbytes);
	return before + length + nbytes;
}

static void put_npy(const char *name, const char *descr, const char *order, const char *shape,
		    const void *data, size_t nbytes)
{
	uint8_t file[FILE_BYTES];
	char header[256];

	snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n",
		 descr, order, shape);
	put_file(name, file, make_npy(file, 1, header, data, nbytes));
}

static const float numbers[] = {1, 2, 3, 4, 5, 6};
static const float classes[] = {2, 0};

static void put_classes(void)
{
	put_npy("y.npy", "'|u1'", "False", "(2,)", "\2\0", 2);
}

/* ---- .npy ---- */

#define BYTES(type, n) ((const type[]){1, 2, 3, 4, 5, 6}), n * sizeof(type)

static void test_types(void)
{
	struct mu_input_config c;
	const uint16_t halves[] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};
	const uint8_t big[] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6}, ones[] = {1, 0, 1, 1, 0, 0};
	const uint8_t big_float[] = {0x3f, 0x80, 0, 0, 0x40, 0, 0, 0};

	put_classes();
	c = config_of("x.npy", "y.npy");
	put_npy("x.npy", "'|u1'", "False", "(2, 3)", BYTES(uint8_t, 6));
	check_read(&c, "3", numbers, classes);
	put_npy("x.npy", "'|i1'", "False", "(2, 3)", BYTES(int8_t, 6));
	check_read(&c, "3", numbers, classes);
	put_npy("x.npy", "'<u2'", "False", "(2, 3)", BYTES(uint16_t, 6));
	check_read(&c, "3", numbers, classes);
	put_npy("x.npy", "'<i2'", "False", "(2, 3)", BYTES(int16_t, 6));
	check_read(&c, "3", numbers, classes);
	put_npy("x.npy", "'<u4'", "False", "(2, 3)", BYTES(uint32_t, 6));
	check_read(&c, "3", numbers, classes);
	put_npy("x.npy", "'<i4'", "False", "(2, 3)", BYTES(int32_t, 6));
	check_read(&c, "3", numbers, classes);
	put_npy("x.npy", "'<u8'", "False", "(2L, 3L)", BYTES(uint64_t, 6));
	check_read(&c, "3", numbers, classes);
	put_npy("x.npy", "'<i8'", "False", "(2, 3)", BYTES(int64_t, 6));
	check_read(&c, "3", numbers, classes);
	put_npy("x.npy", "'<f2'", "False", "(2, 3)", halves, sizeof halves);
	check_read(&c, "3", numbers, classes);
	put_npy("x.npy", "'<f4'", "False", "(2, 3)", BYTES(float, 6));
	check_read(&c, "3", numbers, classes);
	put_npy("x.npy", "'<f8'", "False", "(2, 3)", BYTES(double, 6));
	check_read(&c, "3", numbers, classes);
	put_npy("x.npy", "'>i2'", "False", "(2, 3)", big, sizeof big);
	check_read(&c, "3", numbers, classes);
	put_npy("x.npy", "'>f4'", "False", "(2,)", big_float, sizeof big_float);
	check_read(&c, "1", numbers, classes);
	put_npy("x.npy", "'|b1'", "False", "(2, 3)", ones, sizeof ones);
	check_read(&c, "3", (const float[]){1, 0, 1, 1, 0, 0}, classes);
}

static void test_orders(void)
{
	const double fortran[] = {1, 4, 2, 5, 3, 6};
	const uint8_t volume[] = {1, 9, 5, 13, 3, 11, 7, 15, 2, 10, 6, 14, 4, 12, 8, 16};
	const float want[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	struct mu_input_config c;
	uint8_t file[FILE_BYTES];
	const char *header = "{'shape':(2,1,1,3),\"fortran_order\":False,'descr':'<f4'}";

	put_classes();
	c = config_of("x.npy", "y.npy");
	put_npy("x.npy", "'<f8'", "True", "(2, 3)", fortran, sizeof fortran);
	check_read(&c, "3", numbers, classes);
	put_npy("x.npy", "'|u1'", "True", "(2, 2, 2, 2)", volume, sizeof volume);
	check_read(&c, "2,2,2", want, classes);
	put_npy("x.npy", "'<i2'", "False", "(2, 1, 3)", BYTES(int16_t, 6));
	check_read(&c, "1,3,1", numbers, classes);
	put_npy("x.npy", "'<i2'", "False", "(2, 1, 1, 3, 1)", BYTES(int16_t, 6));
	check_read(&c, "1,1,3,1", numbers, classes);
	put_file("x.npy", file, make_npy(file, 3, header, BYTES(float, 6)));
	check_read(&c, "1,1,3", numbers, classes);
	put_file("x.dat", file, make_npy(file, 2, header, BYTES(float, 6))); /* by its bytes */
	c = config_of("x.dat", "y.npy");
	check_read(&c, "1,1,3", numbers, classes);
}

static void test_bad_npy(void)
{
	static const struct {
		const char *descr, *shape, *part;
	} bad[] = {
		{"'|O'", "(2,)", "Python objects"},
		{"[('a', '<f4'), ('b', '<i8', (2,))]", "(2,)", "a structured array"},
		{"'|V8'", "(2,)", "a structured array"},
		{"'<U3'", "(2,)", "strings"},
		{"'|S3'", "(2,)", "strings"},
		{"'<c8'", "(2,)", "complex"},
		{"'<M8[ns]'", "(2,)", "dates"},
		{"'<f16'", "(2,)", "long doubles"},
		{"'<q9'", "(2,)", "'<q9'"},
		{"'<f4'", "()", "a scalar"},
		{"'<f4'", "(0, 3)", "there is no sample"},
		{"'<f4'", "(3, 0)", "a sample of it has no numbers"},
		{"'<f4'", "(1, 1, 1, 1, 1, 1)", "6 axes"},
		{"'<f4'", "(2, 2)", "too short: 8 bytes of numbers, and its header promises 16"},
		{"'<f4'", "(1,)", "too long"},
		{"'<f4'", "(2, 4611686018427387904, 4)", "more bytes than any file"},
		{"'<f4'", "(99999999999999999999999,)", "cannot be read"},
		{"'<f4'", "(2", "cannot be read"},
		{"'<f4'", "-2", "cannot be read"},
	};
	struct mu_input_config c = config_of("x.npy", "y.npy");
	const float two[] = {1, 2};
	uint8_t file[FILE_BYTES];
	size_t n;

	put_classes();
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		put_npy("x.npy", bad[i].descr, "False", bad[i].shape, two, sizeof two);
		check_refused(&c, bad[i].part, "x.npy");
	}
	n = make_npy(file, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", two, 8);
	memcpy(file + 8, "\xff\xff\xff\xff", 4);
	put_file("x.npy", file, n);
	check_refused(&c, "a header of 4294967295 bytes", "damaged or cut");
	put_file("x.npy", file, 9);
	check_refused(&c, "a header of", "damaged or cut");
	file[6] = 4;
	put_file("x.npy", file, n);
	check_refused(&c, "version 4.0", "");
	put_file("x.npy", file, 0);
	check_refused(&c, "is no .npy file", "");
	put_text("x.npy", "\x89HDF\r\n\x1a\n");
	check_refused(&c, "is no .npy file", "89 48 44 46");
}

/* What float32 does not hold, with file, sample and element. */
static void test_values(void)
{
	struct mu_input_config c = config_of("x.npy", "y.npy");
	const float bad[] = {1, 2, 3, 4, NAN, 6};
	const double large[] = {1, 2, 3, 4, 5, 1e300};
	const int64_t whole[] = {1, 2, 3, 1 << 25, 5, (1 << 24) + 1};
	const uint64_t most[] = {1, 2, 3, 4, 5, UINT64_MAX};
	struct mu_input in;
	float data[MOST], labels[MOST];

	put_classes();
	put_npy("x.npy", "'<f4'", "False", "(2, 1, 3)", bad, sizeof bad);
	check_refused(&c, "sample 1, element 0,1 is NaN", "must be finite");
	c.skip_bad_records = true;
	CHECK(read_all(&c, &in, data, labels)); /* and sample 1 is left out */
	CHECK(in.n_bad == 1);
	mu_input_close(&in);
	c.skip_bad_records = false;
	put_npy("x.npy", "'<f8'", "False", "(2, 3)", large, sizeof large);
	check_refused(&c, "sample 1, element 2 is 1e+300", "must be finite");
	put_npy("x.npy", "'<i8'", "False", "(2, 3)", whole, sizeof whole);
	check_refused(&c, "sample 1, element 2 is 16777217", "an integer that float32 does not");
	put_npy("x.npy", "'<u8'", "False", "(2, 3)", most, sizeof most);
	check_refused(&c, "sample 1, element 2 is 18446744073709551615", "an integer that");
}

/* ---- targets ---- */

static void check_targets(const char *descr, const char *shape, const void *data, size_t nbytes,
			  enum mu_number number)
{
	struct mu_input_config c = config_of("x.npy", "y.npy");
	struct mu_input in;

	put_npy("y.npy", descr, "False", shape, data, nbytes);
	if (!CHECK(mu_input_open(&in, &c) == MU_OK)) {
		fprintf(stderr, "    %s: %s\n", descr, mu_trace_message());
		mu_trace_clear();
		return;
	}
	CHECK(mu_input_field(&in, MU_FIELD_TARGET)->number == number);
	CHECK((number == MU_NUMBER_FLOAT32) == (in.about.not_classes != NULL));
	mu_input_close(&in);
}

static void test_targets(void)
{
	struct mu_input_config c = config_of("x.npy", "y.npy");
	struct mu_input in;

	put_npy("x.npy", "'<i2'", "False", "(2, 3)", BYTES(int16_t, 6));
	check_targets("'<i8'", "(2,)", BYTES(int64_t, 2), MU_NUMBER_INT32);
	check_targets("'<f4'", "(2, 1)", BYTES(float, 2), MU_NUMBER_FLOAT32);
	check_targets("'<f4'", "(2, 3)", BYTES(float, 6), MU_NUMBER_FLOAT32);
	check_targets("'<i8'", "(2,)", ((const int64_t[]){3, -1}), 16, MU_NUMBER_FLOAT32);
	put_npy("y.npy", "'<i8'", "False", "(2,)", ((const int64_t[]){3, 7}), 16);
	CHECK(mu_input_open(&in, &c) == MU_OK);
	CHECK(in.classes == 8 && mu_input_width(&in) == 1);
	mu_input_close(&in);
	c.values = true;
	CHECK(mu_input_open(&in, &c) == MU_OK);
	CHECK(in.classes == 1);
	CHECK(mu_input_field(&in, MU_FIELD_TARGET)->number == MU_NUMBER_FLOAT32);
	mu_input_close(&in);
	c.values = false;
	c.classes = 7;
	check_refused(&c, "y.npy: has label 7; labels must be from 0 to 6", "number of classes");
	c.classes = 0;
	put_npy("y.npy", "'<i8'", "False", "(3,)", BYTES(int64_t, 3));
	check_refused(&c, "x.npy has 2 samples", "y.npy has targets of 3");
	settings.label_train = NULL;
	check_refused(&c, "its targets are not known", "label train");
	c.unlabelled = true;
	check_read(&c, "3", numbers, (const float[]){0, 0});
}

/* The same samples in another order of bytes or axes are the same data; another number is not. */
static void test_contents(void)
{
	const double fortran[] = {1, 4, 2, 5, 3, 6};
	struct mu_input_config c = config_of("x.npy", "y.npy");
	uint64_t hash[4];

	put_classes();
	for (int i = 0; i < 4; i++) {
		struct mu_input in;
		double data[] = {1, 2, 3, 4, 5, 6};

		data[5] += i == 2;
		put_npy("x.npy", "'<f8'", i == 1 ? "True" : "False", "(2, 3)",
			i == 1 ? fortran : data, sizeof data);
		if (i == 3)
			put_npy("y.npy", "'|u1'", "False", "(2,)", "\2\1", 2);
		if (!CHECK(mu_input_open(&in, &c) == MU_OK && mu_input_look(&in) == MU_OK))
			return;
		hash[i] = in.contents.records;
		mu_input_close(&in);
	}
	CHECK(hash[0] == hash[1]);
	CHECK(hash[0] != hash[2]);
	CHECK(hash[0] != hash[3]);
}

/* ---- .npz ---- */

static void put_u16(uint8_t *p, size_t value)
{
	p[0] = (uint8_t)value;
	p[1] = (uint8_t)(value >> 8);
}

static void put_u32(uint8_t *p, size_t value)
{
	put_u16(p, value);
	put_u16(p + 2, value >> 16);
}

struct archive {
	uint8_t file[FILE_BYTES], directory[FILE_BYTES];
	size_t n, directory_n, members;
};

/* A member of an archive; deflated, if that is asked for. */
static void add_member(struct archive *a, const char *name, uint8_t *data, size_t nbytes,
		       bool deflated)
{
	uint8_t packed[FILE_BYTES], *local = a->file + a->n, *p = a->directory + a->directory_n;
	size_t n = nbytes;
	z_stream z = {.next_in = data, .avail_in = (uInt)nbytes};

	memcpy(packed, data, nbytes);
	if (deflated) {
		z.next_out = packed;
		z.avail_out = sizeof packed;
		CHECK(deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
		CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
		deflateEnd(&z);
		n = z.total_out;
	}
	memset(local, 0, 30);
	memset(p, 0, 46);
	memcpy(local, "PK\3\4", 4);
	memcpy(p, "PK\1\2", 4);
	put_u16(p + 10, deflated ? 8 : 0);
	put_u32(p + 16, crc32(0, data, (uInt)nbytes));
	put_u32(p + 20, n);
	put_u32(p + 24, nbytes);
	put_u16(p + 28, strlen(name));
	put_u32(p + 42, a->n);
	memcpy(p + 46, name, strlen(name));
	put_u16(local + 26, strlen(name));
	put_u16(local + 28, 4); /* an extra field, as NumPy writes one */
	memcpy(local + 30, name, strlen(name));
	memset(local + 30 + strlen(name), 0, 4);
	memcpy(local + 34 + strlen(name), packed, n);
	a->n += 34 + strlen(name) + n;
	a->directory_n += 46 + strlen(name);
	a->members++;
}

static void put_archive(const char *name, struct archive *a)
{
	uint8_t end[22] = "PK\5\6";
	uint8_t file[3 * FILE_BYTES];

	put_u16(end + 8, a->members);
	put_u16(end + 10, a->members);
	put_u32(end + 12, a->directory_n);
	put_u32(end + 16, a->n);
	memcpy(file, a->file, a->n);
	memcpy(file + a->n, a->directory, a->directory_n);
	memcpy(file + a->n + a->directory_n, end, sizeof end);
	put_file(name, file, a->n + a->directory_n + sizeof end);
}

static size_t two_npys(uint8_t *x, uint8_t *y, size_t *ny)
{
	static const char of_x[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
	static const char of_y[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }";

	*ny = make_npy(y, 1, of_y, "\2\0", 2);
	return make_npy(x, 1, of_x, BYTES(float, 6));
}

static void test_npz(void)
{
	static uint8_t x[FILE_BYTES], y[FILE_BYTES];
	struct archive a = {.n = 0}, b = {.n = 0}, bad;
	size_t ny, nx = two_npys(x, y, &ny);
	struct mu_input_config c = config_of("a.npz", NULL);

	add_member(&a, "x.npy", x, nx, false);
	add_member(&a, "y.npy", y, ny, true);
	add_member(&a, "other.npy", y, ny, false);
	put_archive("a.npz", &a);
	check_read(&c, "3", numbers, classes);
	c = config_of("a.npz:x", "a.npz:other");
	check_read(&c, "3", numbers, classes);
	c = config_of("a.npz", "a.npz"); /* member x, member y */
	check_read(&c, "3", numbers, classes);
	c = config_of("a.npz:z", "a.npz:y");
	check_refused(&c, "has no array z; it has x, y, other", "a.npz:NAME");
	c = config_of("a.npz:x", NULL);
	check_refused(&c, "its targets are not known", "");

	add_member(&b, "x_train.npy", x, nx, true);
	add_member(&b, "y_train.npy", y, ny, true);
	put_archive("b.npz", &b);
	c = config_of("b.npz", NULL);
	check_read(&c, "3", numbers, classes);
	bad = b;
	bad.file[50] ^= 1;
	put_archive("b.npz", &bad);
	check_refused(&c, "b.npz:x_train", "damaged");
	bad = b;
	put_u16(bad.directory + 8, 1);
	put_archive("b.npz", &bad);
	check_refused(&c, "is encrypted", "");
	bad = b;
	put_u16(bad.directory + 10, 12);
	put_archive("b.npz", &bad);
	check_refused(&c, "packed by method 12", "numpy.savez");
	bad = b;
	put_u32(bad.directory + 24, 0x7fffffff); /* promises 2 GB */
	put_archive("b.npz", &bad);
	check_refused(&c, "cannot be 2147483647", "");
	put_file("b.npz", b.file, b.n);
	check_refused(&c, "has no directory of a ZIP archive", "");
}

/* Arrays of an .npz file that are targets together, by their names. */
static void test_joined(void)
{
	static const char of_w[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }";
	static const char of_v[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
	static uint8_t x[FILE_BYTES], y[FILE_BYTES], w[FILE_BYTES];
	const double two[] = {1.5, -2, 0.25, 7};
	const float joined[] = {1.5f, -2, 2, 0.25f, 7, 0}, alone[] = {1.5f, -2, 0.25f, 7};
	double bad[] = {1.5, -2, 0.25, NAN};
	struct archive a = {.n = 0};
	size_t ny, nx = two_npys(x, y, &ny);
	struct mu_input_config c = config_of("a.npz", NULL);
	struct mu_input in;
	float data[MOST], labels[MOST];

	add_member(&a, "x.npy", x, nx, false);
	add_member(&a, "kind.npy", y, ny, true);
	add_member(&a, "w.npy", w, make_npy(w, 1, of_w, two, sizeof two), false);
	add_member(&a, "v.npy", w, make_npy(w, 1, of_v, two, 3 * sizeof(float)), false);
	add_member(&a, "n.npy", w, make_npy(w, 1, of_w, bad, sizeof bad), false);
	put_archive("a.npz", &a);
	settings.label_columns = "w,kind";
	check_read(&c, "3", numbers, joined);
	CHECK(mu_input_open(&in, &c) == MU_OK);
	CHECK_TEXT(in.about.target_columns, "w,w,kind"); /* of heads, of other data */
	mu_input_close(&in);
	settings.label_columns = "w";
	check_read(&c, "3", numbers, alone);
	settings.label_columns = "w,kind";
	c = config_of("a.npz:x", "a.npz"); /* without settings */
	settings.label_columns = "w,kind";
	check_read(&c, "3", numbers, joined);
	settings.label_columns = "kind,n";
	check_refused(&c, "a.npz:n: sample 1, element 1 is NaN", "");
	c.skip_bad_records = true; /* whose message names column n, the second of three */
	CHECK(read_all(&c, &in, data, labels) && in.n_bad == 1);
	mu_input_close(&in);
	c.skip_bad_records = false;
	settings.label_columns = "w,price";
	check_refused(&c, "a.npz: has no array \"price\"", "it has x, kind, w, v, n");
	settings.label_columns = "w,w";
	check_refused(&c, "label columns w,w: \"w\" is there twice", "");
	settings.label_columns = "w,v";
	check_refused(&c, "a.npz:w has 2 samples, and ", "a.npz:v has 3");
	c = config_of("a.npz:x", "a.npz:w");
	settings.label_columns = "w,kind";
	check_refused(&c, "a.npz:w is one array", "");
	put_classes();
	c = config_of("a.npz:x", "y.npy");
	settings.label_columns = "w,kind";
	check_refused(&c, "label columns w,kind: ", "y.npy, which has the targets, is no table");
}

int main(void)
{
	if (!scratch_make(folder))
		return 1;
	test_types();
	test_orders();
	test_bad_npy();
	test_values();
	test_targets();
	test_contents();
	test_npz();
	test_joined();
	scratch_remove(folder);
	return check_failures() ? 1 : 0;
}
