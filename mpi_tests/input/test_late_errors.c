/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Errors that a file system tells late, by close or on a full disk, of files that HDF5 has open. */
#include <muster/records.h>
#include <muster/storage.h>

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <hdf5.h>

#include "../lib/record_data.h"

enum { SIZE = 40 };

static bool close_fails;

/* In place of libc's, for HDF5 too: of plain files it may fail, and has closed. */
int close(int fd)
{
	struct stat status;
	const bool plain = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
	const int answer = (int)syscall(SYS_close, fd);

	if (!close_fails || !plain)
		return answer;
	errno = EIO;
	return -1;
}

static enum mu_status write_late(float value)
{
	enum mu_status st = MU_OK;
	const size_t n = 1;
	struct mu_array_file *f = NULL;

	MU_TRY(mu_array_file_create(&f, data_path("late.h5")));
	MU_TRY(mu_array_file_write(f, "arg/a", 1, &n, &value));
	st = mu_array_file_close(f, true);
	f = NULL;
out:
	mu_array_file_close(f, false);
	return st;
}

static float read_late(void)
{
	const size_t n = 1;
	struct mu_array_file *f;
	float value = 0;

	if (CHECK(mu_array_file_open_checked(&f, data_path("late.h5")) == MU_OK)) {
		CHECK(mu_array_file_read(f, "arg/a", 1, &n, &value) == MU_OK);
		CHECK(mu_array_file_close(f, false) == MU_OK);
	}
	return value;
}

static enum mu_status write_late_records(void)
{
	enum mu_status st = MU_OK;
	const struct mu_data_file_config config = {.creator = "test"};
	const float label = 1;
	const uint8_t image[SIZE] = {1};
	struct mu_data_writer *w;

	MU_TRY(mu_data_file_create(&w, data_path("late.h5"), &config));
	st = mu_data_file_write(w, &(struct mu_record){.data = image,
						       .n = SIZE,
						       .n_labels = 1,
						       .labels = &label});
	CHECK(st == MU_OK);
	st = mu_data_file_finish(w, true);
out:
	return st;
}

/* A close that fails: what was read is good, what was written is not. HDF5 ends without a crash. */
static void test_failing_close(void)
{
	struct mu_records *r;

	CHECK(write_late_records() == MU_OK);
	close_fails = true;
	CHECK(mu_records_open(&r, data_path("late.h5"), NULL) == MU_OK);
	mu_records_close(r);
	close_fails = false;
	CHECK(write_late(1) == MU_OK);
	close_fails = true;
	CHECK(read_late() == 1);
	CHECK_FAILS(write_late(2), MU_ERR_IO, "late.h5: cannot be written: Input/output error",
		    "");
	CHECK_FAILS(write_late_records(), MU_ERR_IO, "late.h5: cannot be written: Input/output",
		    "");
	close_fails = false;
	CHECK(read_late() == 1);
	unlink(data_path("late.h5"));
	CHECK(scratch_count(data_folder) == 0);
}

/* Nothing can be written: HDF5 does not notice, the file's end tells. */
static void test_full_disk(void)
{
	const struct rlimit limit = {.rlim_cur = 600, .rlim_max = RLIM_INFINITY};
	struct rlimit before;

	signal(SIGXFSZ, SIG_IGN);
	if (!CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0 && before.rlim_max == RLIM_INFINITY))
		return;
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	CHECK_FAILS(write_late(2), MU_ERR_IO, "late.h5: cannot be written: File too large", "");
	CHECK_FAILS(write_late_records(), MU_ERR_IO, "late.h5: cannot be written: File too large",
		    "");
	CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
	CHECK(scratch_count(data_folder) == 0);
}

int main(void)
{
	if (!scratch_make(data_folder))
		return 1;
	test_failing_close();
	test_full_disk();
	CHECK(H5close() >= 0);
	scratch_remove(data_folder);
	return check_failures() ? 1 : 0;
}
