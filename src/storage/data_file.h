/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 data files, inside: names that reader and writer agree on. records.h has the layout. */
#ifndef MUSTER_STORAGE_DATA_FILE_H
#define MUSTER_STORAGE_DATA_FILE_H

#define MU_DATA_FORMAT "muster-data"
#define MU_DATA_CHECKSUM_HELP "CRC-32 (zlib) of the bytes of each array, little-endian"

enum {
	MU_DATA_VERSION = 1,
	MU_DATA_ALIGN = 1 << 20, /* bytes; of arrays that have at least as many */
};

#endif
