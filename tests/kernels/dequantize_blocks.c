// SPDX-License-Identifier: Apache-2.0
// For test_dequantize_reference.py: without arguments lists every row of dequantize that this CPU
// has with each of its types ("ROW TYPE ITEMS BYTES"); with a row and a type it reads blocks from
// standard input until its end and writes their floats.
#include "base/cpu.h"
#include "kernels/dequantize.h"

#include <stdio.h>
#include <string.h>

static bool has(const struct st_dequantize *row) {
    return (row->isa & st_cpu_flags()) == row->isa;
}

static int list(void) {
    for (const struct st_dequantize *row = st_dequantizers; row->name; row++)
        for (int dtype = 0; has(row) && dtype < ST_N_DTYPES; dtype++) {
            const struct st_dtype_traits *t = st_dtype_traits((enum st_dtype)dtype);
            printf("%s %s %u %u\n", row->name, t->name, (unsigned)t->block_items,
                   (unsigned)t->block_bytes);
        }
    return 0;
}

static int copy(const struct st_dequantize *row, enum st_dtype dtype) {
    const struct st_dtype_traits *t = st_dtype_traits(dtype);
    unsigned char block[256];
    float floats[256];
    while (fread(block, t->block_bytes, 1, stdin) == 1) {
        row->fn[dtype](block, 0, t->block_items, floats);
        if (fwrite(floats, sizeof *floats, t->block_items, stdout) != t->block_items) return 1;
    }
    return ferror(stdin) || fflush(stdout) != 0;
}

int main(int argc, char **argv) {
    if (argc == 1) return list();
    for (const struct st_dequantize *row = st_dequantizers; argc == 3 && row->name; row++)
        for (int dtype = 0; has(row) && dtype < ST_N_DTYPES; dtype++)
            if (strcmp(row->name, argv[1]) == 0 &&
                strcmp(st_dtype_traits((enum st_dtype)dtype)->name, argv[2]) == 0)
                return copy(row, (enum st_dtype)dtype);
    fprintf(stderr, "usage: %s [ROW TYPE]\n", argv[0]);
    return 2;
}
