// SPDX-License-Identifier: Apache-2.0
#include "kernels/neuron.h"

#include "base/cpu.h"
#include "kernels/neuron_rows.h"

#define FUNCTIONS(isa)                                                                             \
    {st_neuron_dot_##isa, st_neuron_dot_levels_##isa}, {                                           \
        st_neuron_add_##isa, st_neuron_add_levels_##isa                                            \
    }

const struct st_neuron_kernel st_neuron_kernels[] = {
#if defined(__x86_64__)
    {"neuron_avx512vnni", ST_CPU_AVX512 | ST_CPU_AVX512VNNI, 128, 4, FUNCTIONS(avx512vnni)},
    {"neuron_avxvnni", ST_CPU_AVX2 | ST_CPU_AVXVNNI, 128, 2, FUNCTIONS(avxvnni)},
    {"neuron_avx2", ST_CPU_AVX2, 0, 2, FUNCTIONS(avx2)},
#elif defined(__aarch64__)
    {"neuron_dotprod", ST_CPU_DOTPROD, 0, 1, FUNCTIONS(dotprod)},
    {"neuron_neon", ST_CPU_NEON, 0, 1, FUNCTIONS(neon)},
#endif
    {"neuron_scalar", 0, 0, 1, FUNCTIONS(scalar)},
    {0},
};

const struct st_neuron_kernel *st_neuron_select(uint64_t cpu_flags) {
    const struct st_neuron_kernel *kernel = st_neuron_kernels;
    while ((kernel->isa & cpu_flags) != kernel->isa) kernel++;
    return kernel;
}

// Registers unpack bytes within lanes: in a block of 16 * lanes outputs, register z's lane l holds
// outputs 16 l + 4 z and the next three.
void st_neuron_finish(const struct st_neuron_kernel *kernel, const int32_t *sums, size_t part,
                      size_t n_parts, size_t k, int32_t q_sum, int32_t *y) {
    size_t lanes = kernel->lanes, block = 16 * lanes;
    for (size_t at = 0; at < k; at += 4) {
        size_t b = at / block * block, z = at % block / (4 * lanes), l = at % block / 4 % lanes;
        int32_t *out = y + b + 16 * l + 4 * z;
        for (size_t m = 0; m < 4; m++) {
            uint32_t sum = 0u - 128u * (uint32_t)q_sum;
            for (size_t p = 0; p < n_parts; p++) sum += (uint32_t)sums[p * part + at + m];
            out[m] = (int32_t)sum;
        }
    }
}
