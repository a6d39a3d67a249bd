// SPDX-License-Identifier: Apache-2.0
// System calls take their number in r6 and their arguments from r0 on (Linux's table of 32-bit
// machines that came late: asm-generic/unistd.h).
#include "runtime.h"

enum {
    SYSCALL_READ = 63,
    SYSCALL_WRITE = 64,
    SYSCALL_EXIT_GROUP = 94,
    SYSCALL_CLOCK_GETTIME = 113,
    SYSCALL_MUNMAP = 215,
    SYSCALL_MMAP = 222,
};

enum { PROTECTION_READ_WRITE = 3, MAP_SHARED = 1, CLOCK_MONOTONIC = 1, MAX_ERRNO = 4095 };

// The stack holds the number of arguments, the arguments, NULL, the environment, NULL.
__asm__(".globl _start\n"
        "_start:\n"
        "    r0 = r29\n"
        "    r29 = and(r29, #-8)\n"
        "    call dsp_start\n");

void dsp_start(int *stack);

void dsp_start(int *stack) {
    char **arguments = (char **)(stack + 1);
    dsp_exit(dsp_main(*stack, arguments, arguments + *stack + 1));
}

static int32_t call(uint32_t number, uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e) {
    register uint32_t r0 __asm__("r0") = a;
    register uint32_t r1 __asm__("r1") = b;
    register uint32_t r2 __asm__("r2") = c;
    register uint32_t r3 __asm__("r3") = d;
    register uint32_t r4 __asm__("r4") = e;
    register uint32_t r5 __asm__("r5") = 0;
    register uint32_t r6 __asm__("r6") = number;
    __asm__ volatile("trap0(#1)"
                     : "+r"(r0)
                     : "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5), "r"(r6)
                     : "memory");
    return (int32_t)r0;
}

void dsp_exit(int status) {
    for (;;) call(SYSCALL_EXIT_GROUP, (uint32_t)status, 0, 0, 0, 0);
}

int32_t dsp_read(int file, void *data, size_t bytes) {
    return call(SYSCALL_READ, (uint32_t)file, (uint32_t)data, bytes, 0, 0);
}

int32_t dsp_write(int file, const void *data, size_t bytes) {
    return call(SYSCALL_WRITE, (uint32_t)file, (uint32_t)data, bytes, 0, 0);
}

void *dsp_map_shared(int file, size_t bytes) {
    uint32_t at =
        (uint32_t)call(SYSCALL_MMAP, 0, bytes, PROTECTION_READ_WRITE, MAP_SHARED, (uint32_t)file);
    return at >= (uint32_t)-MAX_ERRNO ? NULL : (void *)at;
}

void dsp_unmap(void *memory, size_t bytes) {
    call(SYSCALL_MUNMAP, (uint32_t)memory, bytes, 0, 0, 0);
}

uint64_t dsp_now_ns(void) {
    int32_t now[2] = {0, 0};
    call(SYSCALL_CLOCK_GETTIME, CLOCK_MONOTONIC, (uint32_t)now, 0, 0, 0);
    return (uint64_t)(uint32_t)now[0] * 1000000000u + (uint32_t)now[1];
}
