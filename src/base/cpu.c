// SPDX-License-Identifier: Apache-2.0
// Built for the baseline, without link-time optimisation: what is asked here decides what may run.
#include "base/cpu.h"

#include "base/big_cores.h"
#include "base/log.h"
#include "base/size.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

static const struct {
    const char *name;
    uint64_t bit;
} sets[] = {
#define X(id, name, bit) {name, ST_CPU_##id},
    ST_CPU_LIST(X)
#undef X
};

// Sets that a CPU with the first one is known to have.
static const struct {
    uint64_t bit, lower;
} implied[] = {
    {ST_CPU_AVXVNNI, ST_CPU_AVX2},
    {ST_CPU_AVX512, ST_CPU_AVX2},
    {ST_CPU_AVX512VNNI, ST_CPU_AVX512 | ST_CPU_AVX2},
    {ST_CPU_AVX512BF16, ST_CPU_AVX512 | ST_CPU_AVX2},
    {ST_CPU_AVX512VBMI, ST_CPU_AVX512 | ST_CPU_AVX2},
    {ST_CPU_GFNI, ST_CPU_AVX512 | ST_CPU_AVX2},
    {ST_CPU_AMX_INT8, ST_CPU_AVX512VNNI | ST_CPU_AVX512 | ST_CPU_AVX2},
    {ST_CPU_AMX_BF16, ST_CPU_AVX512BF16 | ST_CPU_AVX512 | ST_CPU_AVX2},
    {ST_CPU_DOTPROD, ST_CPU_NEON},
    {ST_CPU_I8MM, ST_CPU_DOTPROD | ST_CPU_NEON},
};

enum { N_SETS = sizeof sets / sizeof *sets, N_IMPLIED = sizeof implied / sizeof *implied };

// Written once by detect(); the mask by st_cpu_mask.
static struct {
    pthread_once_t once;
    uint64_t flags;
    char name[64];
    char features[160];
    atomic_uint_least64_t mask;
} cpu = {.once = PTHREAD_ONCE_INIT, .mask = UINT64_MAX};

#if defined(__x86_64__)

struct registers {
    unsigned a, b, c, d;
};

static struct registers query(unsigned leaf, unsigned subleaf) {
    struct registers r = {0, 0, 0, 0};
    if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d)) return r;
    return (struct registers){0, 0, 0, 0};
}

static uint64_t saved_state(void) { // what the system saves at a task switch
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool all(uint64_t bits, uint64_t wanted) {
    return (bits & wanted) == wanted;
}

// Linux grants tiles to a process that asks (Documentation/arch/x86/xstate.rst).
static bool tiles_granted(void) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static uint64_t detect_flags(void) {
    enum { AVX_STATE = 0x6, AVX512_STATE = 0xe6, TILE_STATE = 0x60000 };
    struct registers one = query(1, 0), seven = query(7, 0), more = query(7, 1);
    const uint64_t fma_f16c_osxsave_avx = 1u << 12 | 1u << 29 | 1u << 27 | 1u << 28;
    if (!all(one.c, fma_f16c_osxsave_avx)) return 0;
    uint64_t state = saved_state(), flags = 0;
    if (!all(state, AVX_STATE) || !(seven.b & 1u << 5)) return 0;
    flags |= ST_CPU_AVX2;
    if (more.a & 1u << 4) flags |= ST_CPU_AVXVNNI;
    const uint64_t f_dq_cd_bw_vl = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
    if (!all(state, AVX512_STATE) || !all(seven.b, f_dq_cd_bw_vl)) return flags;
    flags |= ST_CPU_AVX512;
    if (seven.c & 1u << 11) flags |= ST_CPU_AVX512VNNI;
    if (seven.c & 1u << 1) flags |= ST_CPU_AVX512VBMI;
    if (seven.c & 1u << 8) flags |= ST_CPU_GFNI;
    if (more.a & 1u << 5) flags |= ST_CPU_AVX512BF16;
    if (!all(state, TILE_STATE) || !(seven.d & 1u << 24) || !tiles_granted()) return flags;
    if (seven.d & 1u << 25) flags |= ST_CPU_AMX_INT8;
    if (seven.d & 1u << 22) flags |= ST_CPU_AMX_BF16;
    return flags;
}

static void detect_name(char *name, size_t n) {
    struct registers r[3];
    char text[49] = "";
    if (query(0x80000000u, 0).a >= 0x80000004u)
        for (unsigned i = 0; i < 3; i++) r[i] = query(0x80000002u + i, 0);
    else
        memset(r, 0, sizeof r);
    memcpy(text, r, sizeof r);
    const char *start = text + strspn(text, " ");
    snprintf(name, n, "%s", *start ? start : "x86-64");
}

#elif defined(__aarch64__)

static uint64_t detect_flags(void) {
    uint64_t flags = ST_CPU_NEON;
    if (getauxval(AT_HWCAP) & 1ul << 20) flags |= ST_CPU_DOTPROD;
    if (getauxval(AT_HWCAP2) & 1ul << 13) flags |= ST_CPU_I8MM;
    return flags;
}

static void detect_name(char *name, size_t n) {
    snprintf(name, n, "aarch64");
}

#else

static uint64_t detect_flags(void) {
    return 0;
}
static void detect_name(char *name, size_t n) {
    snprintf(name, n, "unknown");
}

#endif

// The sets that a name allows: its own and the lower ones. None for "scalar".
static uint64_t allowed_by_name(const char *name, size_t n) {
    uint64_t allowed = 0;
    for (size_t i = 0; i < N_SETS; i++)
        if (strlen(sets[i].name) == n && memcmp(sets[i].name, name, n) == 0) allowed = sets[i].bit;
    for (size_t i = 0; i < N_IMPLIED; i++)
        if (implied[i].bit == allowed) return allowed | implied[i].lower;
    if (allowed == 0 && !(n == 6 && memcmp(name, "scalar", n) == 0))
        st_log(STINT_LOG_WARNING, "STINT_CPU: no instruction set is called '%.*s'", (int)n, name);
    return allowed;
}

static uint64_t allowed_by_environment(void) {
    const char *text = getenv("STINT_CPU");
    uint64_t allowed = 0;
    if (!text || !*text) return UINT64_MAX;
    while (*text) {
        size_t n = strcspn(text, ",");
        allowed |= allowed_by_name(text, n);
        text += n;
        text += *text == ',';
    }
    return allowed;
}

static void detect(void) {
    size_t used = 0;
    cpu.flags = detect_flags() & allowed_by_environment();
    detect_name(cpu.name, sizeof cpu.name);
    snprintf(cpu.features, sizeof cpu.features, "scalar");
    for (size_t i = 0; i < N_SETS; i++)
        if (cpu.flags & sets[i].bit)
            used += (size_t)snprintf(cpu.features + used, sizeof cpu.features - used, "%s%s",
                                     used ? " " : "", sets[i].name);
}

uint64_t st_cpu_flags(void) {
    pthread_once(&cpu.once, detect);
    return cpu.flags & atomic_load(&cpu.mask);
}

void st_cpu_mask(uint64_t allowed) {
    atomic_store(&cpu.mask, allowed);
}

const char *st_cpu_name(void) {
    pthread_once(&cpu.once, detect);
    return cpu.name;
}

const char *stint_cpu_name(void) {
    return st_cpu_name();
}

const char *stint_cpu_features(void) {
    pthread_once(&cpu.once, detect);
    return cpu.features;
}

// What a container may use: cgroup v2's "QUOTA PERIOD", rounded up to whole cores. SIZE_MAX: no
// bound.
static size_t cores_of_quota(void) {
    unsigned long long quota, period;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (!file) return SIZE_MAX;
    int n_read = fscanf(file, "%llu %llu", &quota, &period); // "max" is no number
    fclose(file);
    if (n_read != 2 || quota == 0 || period == 0) return SIZE_MAX;
    return st_ceil_div((size_t)quota, (size_t)period);
}

static size_t cores_of_affinity(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return st_big_cores(ST_CORES_FOLDER, &set);
    long n = sysconf(_SC_NPROCESSORS_ONLN); // more cores than a cpu_set_t holds
    return n > 0 ? (size_t)n : 1;
}

size_t st_cpu_cores(void) {
    return st_min(cores_of_affinity(), cores_of_quota());
}

size_t st_cpu_cache_bytes(int level) {
    static const struct {
        int name;
        size_t guess;
    } levels[] = {{_SC_LEVEL1_DCACHE_SIZE, 32 << 10},
                  {_SC_LEVEL2_CACHE_SIZE, 512 << 10},
                  {_SC_LEVEL3_CACHE_SIZE, 4 << 20}};
    if (level < 1 || level > 3) return 0;
    long bytes = sysconf(levels[level - 1].name);
    return bytes > 0 ? (size_t)bytes : levels[level - 1].guess;
}
