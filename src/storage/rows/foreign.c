/* SPDX-License-Identifier: Apache-2.0 */
/* Files of data that are not read, by their names or first bytes: what to do with them. */
#include <string.h>

#include <muster/base.h>
#include <muster/storage.h>

#include "rows.h"

#define ARRAY "numpy.save('x.npy', ...) of its arrays makes files that are read"

static const struct {
	const char *endings; /* "|.a|.b|" */
	const char *start;   /* first bytes; NULL: any */
	size_t n;
	const char *advice;
} table[] = {
	{"|.npy|.npz|", NULL, 0,
	 "; arrays are given as data train x.npy and label train y.npy, or data train xy.npz"},
	{"|.tar|", NULL, 0, "; tar files of WebDataset are given as data train x-{000..127}.tar"},
	{"|.csv|", NULL, 0, "; a table is given as data train FILE.csv"},
	{"|.tif|.tiff|", "II*\0", 4, "; it is a TIFF image: save it as PNG, or " ARRAY},
	{"|.tif|.tiff|", "MM\0*", 4, "; it is a TIFF image: save it as PNG, or " ARRAY},
	{"|.parquet|", "PAR1", 4,
	 "; it is a Parquet file: pandas.read_parquet(FILE).to_csv('x.csv', index=False) makes one "
	 "that is read"},
	{"|.feather|.arrow|", "ARROW1", 6,
	 "; it is an Arrow file: pandas.read_feather(FILE).to_csv('x.csv', index=False) makes one "
	 "that is read"},
	{"|.xls|.xlsx|.ods|", NULL, 0,
	 "; it is a spreadsheet: save it as CSV, with commas between the cells"},
	{"|.tsv|.dat|", NULL, 0,
	 "; pandas.read_csv(FILE, sep='\\t').to_csv('x.csv', index=False) makes a table that is "
	 "read"},
	{"|.nc|.nc4|.cdf|", "CDF", 3,
	 "; it is a NetCDF file: numpy.save('x.npy', netCDF4.Dataset(FILE)['NAME'][:]) makes an "
	 "array that is read"},
	{"|.h5|.hdf5|.hdf|.nc|", "\x89HDF\r\n\x1a\n", 8,
	 "; it is an HDF5 file: numpy.save('x.npy', h5py.File(FILE)['NAME'][:]) makes an array "
	 "that "
	 "is read"},
	{"|.mat|", "MATLAB", 6,
	 "; it is a file of MATLAB's: numpy.save('x.npy', scipy.io.loadmat(FILE)['NAME']) makes an "
	 "array that is read"},
	{"|.safetensors|", NULL, 0,
	 "; it is a safetensors file: numpy.save('x.npy', "
	 "safetensors.numpy.load_file(FILE)['NAME'])"
	 " makes an array that is read"},
	{"|.pt|.pth|", NULL, 0,
	 "; it is a file of PyTorch's: numpy.save('x.npy', torch.load(FILE).numpy()) of a tensor "
	 "makes an array that is read"},
	{"|.pkl|.pickle|.joblib|", NULL, 0, "; it is a pickle, which is never opened: " ARRAY},
	{"|.tfrecord|.tfrecords|", NULL, 0, "; it is a file of TensorFlow's: " ARRAY},
	{"|.nii|.dcm|.mha|.fits|.zarr|.grib|", NULL, 0, "; " ARRAY},
	{"|.json|.jsonl|", NULL, 0,
	 "; pandas.read_json(FILE).to_csv('x.csv', index=False) makes a table that is read"},
};

/* Is the ending of path, in small letters, among them? */
static bool ends(const char *path, const char *endings)
{
	const char *dot = strrchr(path, '.');
	char word[16];
	size_t n = 0;

	if (!dot || strchr(dot, '/') || strlen(dot) > sizeof word - 3)
		return false;
	word[n++] = '|';
	for (; *dot; dot++)
		word[n++] = (char)(*dot >= 'A' && *dot <= 'Z' ? *dot - 'A' + 'a' : *dot);
	word[n++] = '|';
	word[n] = '\0';
	return strstr(endings, word) != NULL;
}

const char *mu_rows_advice(const char *path)
{
	char start[8];
	const size_t n = mu_stream_head(path, start, sizeof start);

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (ends(path, table[i].endings) ||
		    (table[i].start && n >= table[i].n &&
		     memcmp(start, table[i].start, table[i].n) == 0))
			return table[i].advice;
	return "";
}
