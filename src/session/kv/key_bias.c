// SPDX-License-Identifier: Apache-2.0
#include "session/kv/key_bias.h"

#include "base/size.h"
#include "model/rope.h"

static const float *bias_of(const struct stint_model *m, uint32_t layer) {
    if (m->config.cache_back[layer]) return NULL;
    if (!m->int8.layers) return m->weights.layers[layer].k.bias;
    const struct st_linear_op *qkv = st_int8_linear_op(&m->int8, ST_INT8_QKV, layer, 0);
    return qkv->weight.bias ? qkv->weight.bias + qkv->rows[0] : NULL;
}

// Of layers with a sliding window, or of the others.
static uint32_t dims_of(const struct st_config *c, int sliding) {
    return sliding && c->local.dim ? c->local.rope_dims : c->rope_dims;
}

static bool changes(const struct st_rope *rope) {
    return rope->scaling == ST_ROPE_DYNAMIC || rope->scaling == ST_ROPE_LONGROPE;
}

static bool leaves_out(const struct stint_model *m, uint32_t layer) {
    const struct st_config *c = &m->config;
    const struct st_rope *rope = c->sliding[layer] ? &c->rope_local : &c->rope;
    return bias_of(m, layer) && !m->weights.layers[layer].k_norm.weight && !changes(rope) &&
           !c->unrotated[layer];
}

// Whether some layer does, of those with a sliding window or of the others.
static bool some_leave_out(const struct stint_model *m, enum st_kv_type type, bool sliding) {
    bool some = false;
    for (uint32_t i = 0; i < m->config.n_layers && st_kv_traits[type].mixed_keys; i++)
        some = some || (m->config.sliding[i] == sliding && leaves_out(m, i));
    return some;
}

size_t st_key_bias_dims(const struct stint_model *model, enum st_kv_type type) {
    bool some = some_leave_out(model, type, false) || some_leave_out(model, type, true);
    return some ? st_config_widest_heads(&model->config).rope_dims : 0;
}

void st_key_bias_lay_out(struct st_key_bias *k, const struct stint_model *model,
                         enum st_kv_type type, size_t positions, struct st_arena *arena) {
    for (int i = 0; i < 2; i++)
        if (some_leave_out(model, type, i))
            k->rotations[i] = ST_TAKE(arena, float, positions *dims_of(&model->config, i));
}

void st_key_bias_reach(struct st_key_bias *k, const struct stint_model *model, size_t n) {
    const struct st_config *c = &model->config;
    const struct st_rope *ropes[] = {&c->rope, &c->rope_local};
    double frequencies[ST_MAX_HEAD_DIM / 2], magnitude;
    if (n <= k->reached) return;
    for (int i = 0; i < 2; i++) {
        uint32_t dims = dims_of(c, i), half = dims / 2;
        if (!k->rotations[i]) continue;
        st_rope_frequencies(ropes[i], dims, n, frequencies, &magnitude);
        for (size_t p = k->reached; p < n; p++) {
            float *row = k->rotations[i] + p * dims;
            st_rope_table(frequencies, magnitude, dims, p, 1, row, row + half);
        }
    }
    k->reached = n;
}

const float *st_key_bias_of(const struct st_key_bias *k, const struct stint_model *model,
                            uint32_t layer) {
    return st_key_bias_rotations(k, model, layer) ? bias_of(model, layer) : NULL;
}

const float *st_key_bias_rotations(const struct st_key_bias *k, const struct stint_model *model,
                                   uint32_t layer) {
    const float *rotations = k->rotations[model->config.sliding[layer]];
    return rotations && leaves_out(model, layer) ? rotations : NULL;
}

// The pair (x, y) of the bias turned by an angle a is (x cos a - y sin a, y cos a + x sin a).
void st_key_bias_factors(const struct st_config *config, size_t rope_dims, const float *query,
                         const float *bias, float *to) {
    size_t half = rope_dims / 2;
    for (size_t i = 0; i < half; i++) {
        size_t x = config->rope_interleaved ? 2 * i : i;
        size_t y = config->rope_interleaved ? 2 * i + 1 : half + i;
        to[i] = query[x] * bias[x] + query[y] * bias[y];
        to[half + i] = query[y] * bias[x] - query[x] * bias[y];
    }
}
