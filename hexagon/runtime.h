// SPDX-License-Identifier: Apache-2.0
// The ground that the DSP programs stand on: start code, system calls of QEMU's user mode, and what
// the compiler calls. There is no C library.
#ifndef DSP_RUNTIME_H
#define DSP_RUNTIME_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The program; what it returns is its exit status.
int dsp_main(int n_arguments, char **arguments, char **environment);

void dsp_exit(int status) __attribute__((noreturn));
// As Linux's, a negative errno for a failure.
int32_t dsp_read(int file, void *data, size_t bytes);
int32_t dsp_write(int file, const void *data, size_t bytes);
// The first `bytes` of a file, shared with all who map it; NULL: it cannot be had.
void *dsp_map_shared(int file, size_t bytes);
void dsp_unmap(void *memory, size_t bytes);
uint64_t dsp_now_ns(void);

// A float and its bits.
static inline uint32_t dsp_bits(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float dsp_float(uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

// divide.c: a / b by digits, the definition that the compiler's function is held against.
float dsp_divide_slowly(float a, float b);
// What the compiler calls for a / b: correctly rounded to nearest even, with all its exceptions.
float __hexagon_divsf3(float a, float b);
uint32_t __hexagon_udivsi3(uint32_t a, uint32_t b);
uint32_t __hexagon_umodsi3(uint32_t a, uint32_t b);

#endif
