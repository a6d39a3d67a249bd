// SPDX-License-Identifier: Apache-2.0
#ifndef ST_KERNELS_NEURON_ROWS_H
#define ST_KERNELS_NEURON_ROWS_H

#include "kernels/neuron.h"

#define ST_NEURON_ROW_OF(isa)                                                                      \
    st_neuron_dot_fn st_neuron_dot_##isa, st_neuron_dot_levels_##isa;                              \
    st_neuron_add_fn st_neuron_add_##isa, st_neuron_add_levels_##isa;

ST_NEURON_ROW_OF(avx512vnni)
ST_NEURON_ROW_OF(avxvnni)
ST_NEURON_ROW_OF(avx2)
ST_NEURON_ROW_OF(dotprod)
ST_NEURON_ROW_OF(neon)
ST_NEURON_ROW_OF(scalar)

#endif
