// SPDX-License-Identifier: Apache-2.0
// The products of a device whose speed is stated: plain loops would be slower than what it stands
// for. Its inputs stay in the device's own layout and are copied for the kernel.
#include "device/sim/sim.h"

#include "device/two_term.h"

size_t st_sim_kernel_row(size_t n_in) {
    return st_int8_padded_k(n_in) + ST_DEVICE_PAD;
}

void st_sim_kernel_input(const struct st_int8_kernel *kernel, const struct st_quantized *from,
                         size_t n_in, size_t token, size_t n, uint8_t *x) {
    size_t terms = from->two_term ? ST_TWO_TERMS : 1, row = st_sim_kernel_row(n_in);
    for (size_t i = 0; i < n * terms; i++) {
        const uint8_t *q = from->data + (token + i / terms) * from->row + i % terms * from->rest;
        for (size_t k = 0; k < n_in; k++) x[i * row + k] = q[k] ^ kernel->zero;
    }
}

void st_sim_kernel_sums(const struct st_int8_kernel *kernel, const int8_t *panels, size_t n_in,
                        size_t row, size_t n_rows, const uint8_t *x, size_t n_x, int32_t *sums) {
    size_t x_row = st_sim_kernel_row(n_in), k = st_int8_padded_k(n_in);
    size_t first = row / ST_INT8_PANEL, n_panels = n_rows / ST_INT8_PANEL;
    for (size_t p = 0; p < n_panels; p += kernel->panels)
        for (size_t t = 0; t < n_x; t += kernel->tokens)
            kernel->tile(panels + (first + p) * st_int8_panel_bytes(n_in),
                         st_min(kernel->panels, n_panels - p), x + t * x_row, x_row,
                         st_min(kernel->tokens, n_x - t), k,
                         sums + t * ST_DEVICE_GROUP + p * ST_INT8_PANEL, ST_DEVICE_GROUP);
}
