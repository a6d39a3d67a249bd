// SPDX-License-Identifier: Apache-2.0
// Binds what layers with recurrent state have in place of attention.
#include "kernels/dequantize.h"
#include "model/binder.h"

#include <math.h>

// The factor of channel d of what Mamba-2's convolution meets: values, keys, queries.
static float mixed_scale(const struct st_config *c, size_t d) {
    const struct st_state_shape *s = &c->state;
    size_t n_values = (size_t)s->n_heads * s->n_values, n_keys = (size_t)s->n_groups * s->n_keys;
    if (c->mixed_scale[0] == 0.0f) return 1.0f;
    return c->mixed_scale[d < n_values ? 1 : d < n_values + n_keys ? 2 : 3];
}

// Stored [channels, 1, length], or without the middle.
static stint_status bind_taps(const struct st_binder *b, uint32_t i, const float **out) {
    const struct st_config *c = b->config;
    size_t width = st_config_conv_width(c), n = width * c->conv_length;
    uint64_t three[] = {width, 1, c->conv_length}, two[] = {width, c->conv_length};
    struct st_tensor t;
    bool found, flat = b->source->gguf;
    ST_TRY(st_bind_find(b, ST_ROLE_CONV, ".weight", i, 0, flat ? 2 : 3, flat ? two : three, true,
                        &t, &found));
    float *stored = ST_TAKE(b->arena, float, n), *taps = ST_TAKE(b->arena, float, n);
    *out = taps;
    if (!taps || !stored) return STINT_OK; // measuring
    st_dequantize_select(0)->fn[t.dtype](t.data, 0, n, stored);
    for (size_t d = 0; d < width; d++)
        for (size_t k = 0; k < c->conv_length; k++)
            taps[k * width + d] = stored[d * c->conv_length + k] * mixed_scale(c, d);
    return STINT_OK;
}

// What stands for q, k and v, one below the other in one tensor.
static stint_status bind_conv_in(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    const struct st_config *c = b->config;
    struct st_linear_weight *const parts[] = {&layer->q, &layer->k, &layer->v};
    struct st_linear_weight whole;
    ST_TRY(st_bind_linear(b, ST_ROLE_CONV_IN, i, 3 * c->hidden, c->hidden, c->conv_bias, &whole));
    for (size_t p = 0; p < 3; p++) {
        size_t row = p * c->hidden;
        *parts[p] = whole;
        parts[p]->n_out = c->hidden;
        if (whole.data) parts[p]->data = (const unsigned char *)whole.data + row * whole.row_bytes;
        if (whole.bias) parts[p]->bias = whole.bias + row;
    }
    return STINT_OK;
}

stint_status st_bind_conv(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    const struct st_config *c = b->config;
    ST_TRY(bind_conv_in(b, i, layer));
    ST_TRY(bind_taps(b, i, &layer->conv.taps));
    ST_TRY(st_bind_vector(b, ST_ROLE_CONV, ".bias", i, 0, c->hidden, c->conv_bias, 0.0f,
                          &layer->conv.bias));
    return st_bind_linear(b, ST_ROLE_CONV_OUT, i, c->hidden, c->hidden, c->conv_bias, &layer->o);
}

// A vector that GGUF files of Mamba-2 store as a matrix of so many rows.
static stint_status bind_flat(const struct st_binder *b, enum st_role role, const char *suffix,
                              uint32_t i, uint32_t rows, uint32_t n, const float **out) {
    uint64_t dims[] = {rows, n / rows};
    struct st_tensor t;
    bool found;
    if (!b->source->gguf) return st_bind_vector(b, role, suffix, i, 0, n, true, 0.0f, out);
    ST_TRY(st_bind_find(b, role, suffix, i, 0, 2, dims, true, &t, &found));
    float *copy = ST_TAKE(b->arena, float, n);
    if (copy) st_dequantize_select(0)->fn[t.dtype](t.data, 0, n, copy);
    *out = copy;
    return STINT_OK;
}

static void set_decay_scales(const struct st_binder *b, const float *scales) {
    float *scale = (float *)(uintptr_t)scales; // of the arena
    for (uint32_t h = 0; h < b->config->state.n_heads && scale && !b->source->gguf; h++)
        scale[h] = -expf(scale[h]);
}

// How fast a state learns and fades.
static stint_status bind_gates(const struct st_binder *b, uint32_t i,
                               struct st_state_weight *state) {
    const struct st_config *c = b->config;
    uint32_t n = c->state.n_heads;
    bool fused = (c->flags & ST_ARCH_FUSED_GATES) != 0;
    ST_TRY(st_bind_linear(b, ST_ROLE_STATE_RATE, i, fused ? 2 * n : n, c->hidden, false,
                          &state->rate));
    if (!fused)
        ST_TRY(st_bind_linear(b, ST_ROLE_STATE_DECAY, i, n, c->hidden, false, &state->decay));
    ST_TRY(
        st_bind_vector(b, ST_ROLE_STATE_DECAY_BIAS, "", i, 0, n, true, 0.0f, &state->decay_bias));
    ST_TRY(
        st_bind_vector(b, ST_ROLE_STATE_DECAY_SCALE, "", i, 0, n, true, 0.0f, &state->decay_scale));
    set_decay_scales(b, state->decay_scale);
    float *ones = ST_TAKE(b->arena, float, c->state.n_keys);
    for (uint32_t k = 0; k < c->state.n_keys && ones; k++) ones[k] = 1.0f;
    state->ones = ones;
    return st_bind_vector(b, ST_ROLE_STATE_NORM, ".weight", i, 0, c->state.n_values, true, 0.0f,
                          &state->norm);
}

stint_status st_bind_delta(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    const struct st_config *c = b->config;
    struct st_mixer_widths w = st_config_mixer(c, i);
    ST_TRY(st_bind_linear(b, ST_ROLE_CONV_IN, i, w.q, c->hidden, false, &layer->q));
    if (w.k) ST_TRY(st_bind_linear(b, ST_ROLE_STATE_GATE, i, w.k, c->hidden, false, &layer->k));
    ST_TRY(bind_taps(b, i, &layer->conv.taps));
    ST_TRY(bind_gates(b, i, &layer->state));
    return st_bind_linear(b, ST_ROLE_CONV_OUT, i, c->hidden, w.out, false, &layer->o);
}

// The gates of what the layer gives, the convolution's inputs and the steps, one below the other.
static stint_status bind_mamba_in(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    struct st_mixer_widths w = st_config_mixer(b->config, i);
    struct st_linear_weight *const parts[] = {&layer->k, &layer->q, &layer->v};
    const uint32_t n_out[] = {w.k, w.q, w.v};
    struct st_linear_weight whole;
    size_t row = 0;
    ST_TRY(st_bind_linear(b, ST_ROLE_CONV_IN, i, w.k + w.q + w.v, b->config->hidden,
                          b->config->mix_bias, &whole));
    for (size_t p = 0; p < 3; row += n_out[p++]) {
        *parts[p] = whole;
        parts[p]->n_out = n_out[p];
        if (whole.data) parts[p]->data = (const unsigned char *)whole.data + row * whole.row_bytes;
        if (whole.bias) parts[p]->bias = whole.bias + row;
    }
    layer->k.scale *= b->config->mixed_scale[0];
    layer->v.scale *= b->config->mixed_scale[ST_N_MIXED - 1];
    return STINT_OK;
}

stint_status st_bind_mamba(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    const struct st_config *c = b->config;
    struct st_state_weight *state = &layer->state;
    struct st_mixer_widths w = st_config_mixer(c, i);
    uint32_t n = c->state.n_heads;
    ST_TRY(bind_mamba_in(b, i, layer));
    ST_TRY(bind_taps(b, i, &layer->conv.taps));
    ST_TRY(
        st_bind_vector(b, ST_ROLE_CONV, ".bias", i, 0, w.q, c->conv_bias, 0.0f, &layer->conv.bias));
    ST_TRY(
        st_bind_vector(b, ST_ROLE_STATE_DECAY_BIAS, "", i, 0, n, true, 0.0f, &state->decay_bias));
    ST_TRY(bind_flat(b, ST_ROLE_STATE_DECAY_SCALE, "", i, n, n, &state->decay_scale));
    ST_TRY(bind_flat(b, ST_ROLE_STATE_SKIP, "", i, n, n, &state->skip));
    if (!c->state_unnormed)
        ST_TRY(
            bind_flat(b, ST_ROLE_STATE_NORM, ".weight", i, c->state.n_groups, w.out, &state->norm));
    set_decay_scales(b, state->decay_scale);
    return st_bind_linear(b, ST_ROLE_CONV_OUT, i, c->hidden, w.out, c->mix_bias, &layer->o);
}
