#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The lint finds nothing in the source, and its rules do fire.
st=0
"$SRCDIR/mpi_tests/tools/lint" --self-test || st=1
"$SRCDIR/mpi_tests/tools/lint" || st=1
exit $st
