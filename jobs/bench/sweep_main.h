/* SPDX-License-Identifier: Apache-2.0 */
/* The commands mubench run and mubench report. sweep_none.c stands in for them where there is no
 * JSON library. */
#ifndef BENCH_SWEEP_MAIN_H
#define BENCH_SWEEP_MAIN_H

/* argv[0] is "run" or "report". Exit status: 0, 1 an error or a failed experiment, 2 wrong use. */
int sweep_main_run(int argc, char **argv);
int sweep_main_report(int argc, char **argv);

#endif
