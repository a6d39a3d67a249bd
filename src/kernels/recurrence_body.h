// SPDX-License-Identifier: Apache-2.0
// Recurrences for one instruction set: a panel of columns lies in the first-level cache while its
// tokens pass. Advancing the state by a token also sums what the next token's key finds, so the
// panel is read once for each token. Sums are split over SPLITS rows in turn, whether or not a
// token has another one behind it.
#include "base/cpu.h"
#include "kernels/recurrence_rows.h"
#include "kernels/vec.h"

#include <stdbool.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 4") // or sums are not in registers

enum { VECTORS = ST_STATE_PANEL / VF_LANES, SPLITS = 4 / VECTORS > 1 ? 4 / VECTORS : 1 };

struct sums {
    vf of[SPLITS][VECTORS];
};

INLINE struct sums no_sums(void) {
    struct sums s;
    UNROLL for (int i = 0; i < SPLITS; i++) UNROLL for (int v = 0; v < VECTORS; v++) s.of[i][v] =
        vf_set1(0.0f);
    return s;
}

INLINE vf total(const struct sums *s, int v) {
    vf sum = s->of[0][v];
    UNROLL for (int i = 1; i < SPLITS; i++) sum = vf_add(sum, s->of[i][v]);
    return sum;
}

// One token on its way through a panel.
struct token {
    vf decay, value[VECTORS];
    const float *key, *query, *next; // next: the key of the token after it
};

// Row k of a panel, which is row `split` of SPLITS.
INLINE void advance_row(float *panel, size_t k, int split, const struct token *t, bool outputs,
                        bool ahead, struct sums *out, struct sums *found) {
    vf key = vf_set1(t->key[k]);
    UNROLL for (int v = 0; v < VECTORS; v++) {
        float *at = panel + k * ST_STATE_PANEL + (size_t)v * VF_LANES;
        vf s = vf_fma(key, t->value[v], vf_mul(t->decay, vf_load(at)));
        vf_store(at, s);
        if (outputs) out->of[split][v] = vf_fma(vf_set1(t->query[k]), s, out->of[split][v]);
        if (ahead) found->of[split][v] = vf_fma(vf_set1(t->next[k]), s, found->of[split][v]);
    }
}

INLINE void advance(float *panel, size_t n_keys, const struct token *t, bool outputs, bool ahead,
                    struct sums *out, struct sums *found) {
    size_t k = 0;
    for (; k + SPLITS <= n_keys; k += SPLITS)
        UNROLL for (int i = 0; i < SPLITS; i++)
            advance_row(panel, k + (size_t)i, i, t, outputs, ahead, out, found);
    UNROLL for (int i = 0; i < SPLITS - 1; i++) if (k + (size_t)i < n_keys)
        advance_row(panel, k + (size_t)i, i, t, outputs, ahead, out, found);
}

INLINE void find_row(const float *panel, size_t k, int split, const float *key, struct sums *s) {
    UNROLL for (int v = 0; v < VECTORS; v++) s->of[split][v] =
        vf_fma(vf_set1(key[k]), vf_load(panel + k * ST_STATE_PANEL + (size_t)v * VF_LANES),
               s->of[split][v]);
}

// What a key finds in a panel.
INLINE struct sums find(const float *panel, size_t n_keys, const float *key) {
    struct sums found = no_sums();
    size_t k = 0;
    for (; k + SPLITS <= n_keys; k += SPLITS)
        UNROLL for (int i = 0; i < SPLITS; i++) find_row(panel, k + (size_t)i, i, key, &found);
    UNROLL for (int i = 0; i < SPLITS - 1; i++) if (k + (size_t)i < n_keys)
        find_row(panel, k + (size_t)i, i, key, &found);
    return found;
}

INLINE void load_values(const float *values, size_t n, struct token *t) {
    float some[ST_STATE_PANEL] = {0.0f};
    if (n < ST_STATE_PANEL) values = memcpy(some, values, n * sizeof *values);
    UNROLL for (int v = 0; v < VECTORS; v++) t->value[v] = vf_load(values + v * VF_LANES);
}

INLINE void store_values(const vf *x, size_t n, float *values) {
    float some[ST_STATE_PANEL], *to = n < ST_STATE_PANEL ? some : values;
    UNROLL for (int v = 0; v < VECTORS; v++) vf_store(to + v * VF_LANES, x[v]);
    if (n < ST_STATE_PANEL) memcpy(values, some, n * sizeof *values);
}

INLINE void learn(const struct st_recurrence_run *r, size_t i, const struct sums *found,
                  struct token *t) {
    vf rate = vf_set1(r->rates[i * r->gate_row]);
    UNROLL for (int v = 0; v < VECTORS; v++) t->value[v] =
        vf_mul(rate, vf_sub(t->value[v], vf_mul(t->decay, total(found, v))));
}

// Columns [first, first + n) of all tokens.
INLINE void run_panel(const struct st_recurrence_run *r, size_t first, size_t n, bool outputs,
                      bool delta) {
    float *panel = r->state + first * r->n_keys;
    struct sums found = no_sums();
    if (delta) found = find(panel, r->n_keys, r->keys);
    for (size_t i = 0; i < r->n_tokens; i++) {
        struct sums out = no_sums(), next = no_sums();
        struct token t = {.decay = vf_set1(r->decays[i * r->gate_row]),
                          .key = r->keys + i * r->key_row};
        bool ahead = delta && i + 1 < r->n_tokens;
        if (outputs) t.query = r->queries + i * r->key_row;
        if (ahead) t.next = t.key + r->key_row;
        load_values(r->values + i * r->value_row + first, n, &t);
        if (delta) learn(r, i, &found, &t);
        if (delta) store_values(t.value, n, r->values + i * r->value_row + first);
        if (ahead)
            advance(panel, r->n_keys, &t, outputs, true, &out, &next);
        else
            advance(panel, r->n_keys, &t, outputs, false, &out, &next);
        found = next;
        vf sum[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++) sum[v] = total(&out, v);
        if (outputs) store_values(sum, n, r->out + i * r->out_row + first);
    }
}

static void run(const struct st_recurrence_run *r) {
    for (size_t first = 0; first < r->n_values && r->n_tokens; first += ST_STATE_PANEL) {
        size_t rest = r->n_values - first, n = rest < ST_STATE_PANEL ? rest : ST_STATE_PANEL;
        if (r->rates && r->queries)
            run_panel(r, first, n, true, true);
        else if (r->queries)
            run_panel(r, first, n, true, false);
        else if (r->rates)
            run_panel(r, first, n, false, true);
        else
            run_panel(r, first, n, false, false);
    }
}

const struct st_recurrence RECURRENCE = {
    .name = RECURRENCE_NAME, .isa = RECURRENCE_ISA, .run = run};
