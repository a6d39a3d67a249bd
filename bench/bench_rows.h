// SPDX-License-Identifier: Apache-2.0
// Times the rows of a kernel table on one case: rows alternate, so that a change of the clock hits
// all of them, and the median of the rounds counts. The last row is the scalar one.
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { BENCH_ROUNDS = 7, BENCH_MAX_ROWS = 8, BENCH_SAMPLE_NS = 2000000 };

// Runs row `row` once; `context` is the case.
typedef void bench_fn(size_t row, void *context);

static inline double bench_sample(bench_fn *fn, size_t row, void *context, size_t repeats) {
    uint64_t start = st_now_ns();
    for (size_t i = 0; i < repeats; i++) fn(row, context);
    return (double)(st_now_ns() - start) / (double)repeats;
}

static inline int bench_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// median[row]: nanoseconds of one run.
static inline void bench_medians(size_t n_rows, bench_fn *fn, void *context, double *median) {
    double ns[BENCH_MAX_ROWS][BENCH_ROUNDS];
    size_t repeats[BENCH_MAX_ROWS];
    for (size_t row = 0; row < n_rows; row++) {
        double once = bench_sample(fn, row, context, 3);
        repeats[row] = 1 + (size_t)(BENCH_SAMPLE_NS / (once + 1.0));
    }
    for (size_t round = 0; round < BENCH_ROUNDS; round++)
        for (size_t row = 0; row < n_rows; row++)
            ns[row][round] = bench_sample(fn, row, context, repeats[row]);
    for (size_t row = 0; row < n_rows; row++) {
        qsort(ns[row], BENCH_ROUNDS, sizeof(double), bench_compare);
        median[row] = ns[row][BENCH_ROUNDS / 2];
    }
}

// Prints one line per row: `elements` and `bytes` (read and written) of one run give the rates.
static inline void bench_rows(const char *label, const char *const *names, size_t n_rows,
                              bench_fn *fn, void *context, double elements, double bytes) {
    double median[BENCH_MAX_ROWS];
    bench_medians(n_rows, fn, context, median);
    for (size_t row = 0; row < n_rows; row++)
        printf("%-28s %-20s %9.4f ns/element %8.1f GB/s %7.1f x scalar\n", label, names[row],
               median[row] / elements, bytes / median[row], median[n_rows - 1] / median[row]);
}

#endif
