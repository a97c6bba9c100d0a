/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Tables in .csv files: names, quotes and targets, and every kind of bad line. */
#include "../lib/array_files.h"

static void test_csv(void)
{
	struct mu_input_config c = config_of("t.csv", NULL);
	const float targets[] = {3, 6}, first[] = {1, 4};
	const float inputs[] = {1, 2, 4, 5}, others[] = {2, 3, 5, 6};

	put_text("t.csv", "1,2,3\n4,5,6\n");
	check_read(&c, "2", inputs, targets);
	put_text("t.csv", "\xef\xbb\xbf"
			  "a,b,t\r\n1.0,2e0,3\r\n+4.,5,6\r\n\r\n");
	check_read(&c, "2", inputs, targets);
	put_text("t.csv",
		 "# made by a program\n\"a, first\",\"b \"\"q\"\"\",t\n\"1\" , 2,3\n4,5,6");
	check_read(&c, "2", inputs, targets);
	put_text("t.csv", "0,1,t\n1,2,3\n4,5,6\n"); /* as pandas names columns */
	check_read(&c, "2", inputs, targets);
	settings.label_columns = "a";
	put_text("t.csv", "a,b,t\n1,2,3\n4,5,6\n");
	check_read(&c, "2", others, first);
	settings.label_columns = "1";
	check_read(&c, "2", others, first);
	settings.label_columns = "t,b";
	check_read(&c, "1", first, (const float[]){3, 2, 6, 5});
	settings.label_columns = "none";
	c.unlabelled = true;
	check_read(&c, "3", (const float[]){1, 2, 3, 4, 5, 6}, (const float[]){0, 0});
	c = config_of("t.csv", "y.csv");
	put_text("y.csv", "3\n6\n");
	check_read(&c, "3", (const float[]){1, 2, 3, 4, 5, 6}, targets);
}

static void test_bad_csv(void)
{
	static const struct {
		const char *text, *part1, *part2;
	} bad[] = {
		{"", "the file is empty", ""},
		{"a,b,t\n", "there is no sample", ""},
		{"a,b,t\n1,,3\n", "t.csv:2:2: column b is missing", "fill it in"},
		{"a,b,t\n1,NA,3\n", "t.csv:2:2: column b is missing: NA", ""},
		{"a,b,t\n1,2,3\n4,5\n", "t.csv:3: has 2 columns", "the first line has 3"},
		{"a,b,t\n1,2,3,4\n", "t.csv:2: has 4 columns", ""},
		{"a,b,t\n\n1,2,3\n", "t.csv:2: is empty, and lines follow", ""},
		{"a,b,t\n1,high,3\n", "t.csv:2:2: column b is no number: \"high\"", ""},
		{"1,high,3\n4,5,6\n", "t.csv:1:2: column 2 is no number", ""},
		{"a,b,t\n1,0x10,3\n", "t.csv:2:2: column b is no number", ""},
		{"a,b,t\n1,2e,3\n", "is no number", ""},
		{"a,b,t\n1,nan,3\n", "t.csv:2:2: column b is nan", "finite"},
		{"a,b,t\n1,-inf,3\n", "t.csv:2:2: column b is -inf", "finite"},
		{"a,b,t\n1,1e60,3\n", "1e60", "float32 does not hold"},
		{"a,b,t\n1,16777217,3\n", "16777217, an integer that float32", "rounded"},
		{"a;b;t\n1;2;3\n", "t.csv:1: the separator is a semicolon", "sep=';'"},
		{"a\tb\tt\n1\t2\t3\n", "t.csv:1: the separator is a tab", ""},
		{"a;b;t\n1,5;2;3\n", "decimal comma", "decimal=','"},
		{"1,5;2,5;3\n", "decimal comma", "decimal=','"},
		{"a,b,t\n1,\"2,5\",3\n", "t.csv:2:2: column b is 2,5, with a decimal comma", ""},
		{"a,b,t\n1,\"2,500\",3\n", "t.csv:2:2: column b is 2,500; ", "thousands=','"},
		{"a,b,t\n1,\"2,3\n", "t.csv:2:2: a quote", "not closed"},
		{"a,a,t\n1,2,3\n", "two columns have the name \"a\"", ""},
		{",a,t\n0,2,3\n", "the column has no name", "index=False"},
		{"t\n1\n2\n", "has one column", "label train"},
	};
	struct mu_input_config c = config_of("t.csv", NULL);

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		put_text("t.csv", bad[i].text);
		check_refused(&c, bad[i].part1, bad[i].part2);
	}
	put_text("t.csv", "a,b,t\n1,2,3\n");
	settings.label_columns = "price";
	check_refused(&c, "has no column \"price\"", "it has a, b, t");
	settings.label_columns = "t,t";
	check_refused(&c, "\"t\" is there twice", "");
	settings.label_columns = "a,b,t";
	check_refused(&c, "all columns are targets", "");
}

/* Cells without a number are bad samples, if these are skipped. */
static void test_skipped(void)
{
	struct mu_input_config c = config_of("t.csv", NULL);
	struct mu_input in;
	float data[MOST], labels[MOST];

	c.skip_bad_records = true;
	put_text("t.csv", "a,t\n1,2\n,3\n4,nan\n5,6\n");
	CHECK(read_all(&c, &in, data, labels));
	CHECK(in.n == 4 && in.n_bad == 2);
	CHECK(data[0] == 1 && labels[0] == 2 && data[3] == 5 && labels[3] == 6);
	mu_input_close(&in);
	put_text("t.csv", "a,t\n1,2\nhigh,3\n");
	check_refused(&c, "no number: \"high\"", ""); /* a column of words is no bad record */
}

int main(void)
{
	if (!scratch_make(folder))
		return 1;
	test_csv();
	test_bad_csv();
	test_skipped();
	scratch_remove(folder);
	return check_failures() ? 1 : 0;
}
