// SPDX-License-Identifier: Apache-2.0
// What this CPU can do, asked of the CPU and of the operating system (register state must be saved
// too).
#ifndef ST_BASE_CPU_H
#define ST_BASE_CPU_H

#include "base/status.h"

#include <stdint.h>

// name in STINT_CPU, bit. A row of a kernel table needs all bits of its `isa`.
#define ST_CPU_LIST(X)                                                                             \
    X(AVX2, "avx2", 0)     /* AVX2, FMA, F16C */                                                   \
    X(AVX512, "avx512", 1) /* F, BW, DQ, VL, CD */                                                 \
    X(AVX512VNNI, "vnni", 2)                                                                       \
    X(AVX512BF16, "avx512bf16", 3)                                                                 \
    X(AVX512VBMI, "vbmi", 4)                                                                       \
    X(GFNI, "gfni", 5)                                                                             \
    X(AMX_INT8, "amx-int8", 6) /* tiles, and the system's permission to use them */                \
    X(AMX_BF16, "amx-bf16", 7)                                                                     \
    X(AVXVNNI, "avxvnni", 8) /* in registers of 256 bits */                                        \
    X(NEON, "neon", 16)                                                                            \
    X(DOTPROD, "dotprod", 17)                                                                      \
    X(I8MM, "i8mm", 18)

enum {
#define X(id, name, bit) ST_CPU_##id = 1 << bit,
    ST_CPU_LIST(X)
#undef X
};

// Bits of ST_CPU_*. Detected once; lowered by STINT_CPU in the environment (a comma list of names
// that may be used, "scalar" for none; a name that includes lower ones brings them along) and by
// st_cpu_mask().
uint64_t st_cpu_flags(void);

// Lowers the set for the whole process; for tests, before any model is opened. UINT64_MAX restores
// it.
void st_cpu_mask(uint64_t allowed);

// The CPU's own name, e.g. for bench records. Never NULL.
const char *st_cpu_name(void);

// Cores this process may run on, without small ones beside big ones (base/big_cores.h); at least 1.
size_t st_cpu_cores(void);

// Bytes of the data cache at `level` (1, 2, 3); a cautious guess where the system does not tell.
size_t st_cpu_cache_bytes(int level);

#endif
