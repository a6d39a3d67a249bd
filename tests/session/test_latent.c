// SPDX-License-Identifier: Apache-2.0
// Latent attention: one row of the cache serves all heads, as a key and as a value, in every type;
// steps give what prompts give. The numbers themselves are held against transformers by the
// goldens.
#include "session/session.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { N = 40, VOCAB = 48 };

static stint_model *open_golden(const char *name) {
    char path[100];
    stint_model *m = NULL;
    stint_model_options o = {.size = sizeof o, .no_tokenizer = true, .exec = STINT_EXEC_FLOAT};
    snprintf(path, sizeof path, "tests/golden/models/%s", name);
    if (stint_model_open(ts_source(path), &o, &m) != STINT_OK) fail_msg("%s", stint_error_text());
    return m;
}

static stint_session *open_session(const stint_model *m, const char *kv) {
    stint_session *s = NULL;
    stint_session_options o = {
        .size = sizeof o, .n_threads = 2, .n_context = N, .chunk_len = 16, .kv = kv};
    if (stint_session_open(m, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

// Of n rows of logits, those that are within `bound` everywhere.
static size_t count_close(const float *a, const float *b, size_t n, float bound) {
    size_t close = 0;
    for (size_t t = 0; t < n; t++) {
        float worst = 0.0f;
        for (size_t i = t * VOCAB; i < (t + 1) * VOCAB; i++)
            worst = fmaxf(worst, fabsf(a[i] - b[i]));
        close += worst < bound;
    }
    return close;
}

static void check(const char *name) {
    static const char *const types[] = {"f32", "f16", "q8"};
    static const float bounds[] = {1e-3f, 0.05f, 0.5f}; // logits deviate by about 1
    static float exact[N * VOCAB], got[N * VOCAB];
    int32_t ids[N];
    stint_model *m = open_golden(name);
    for (size_t i = 0; i < N; i++) ids[i] = (int32_t)(i * 37 + 11) % 44 + 3; // the goldens'
    for (size_t t = 0; t < 3; t++) {
        // Rounding moves close calls of the router, and with them a token's logits.
        size_t least = N / 2;
        stint_session *s = open_session(m, types[t]);
        assert_ptr_equal(s->kv.keys, s->kv.values);
        assert_int_equal(s->kv.layers[0].n_heads, 1);
        assert_false(st_kv_mixes_keys(&s->kv));
        assert_int_equal(stint_session_eval(s, 0, ids, N, true, t ? got : exact), STINT_OK);
        if (t) assert_true(count_close(got, exact, N, bounds[t]) >= least);
        assert_int_equal(stint_session_truncate(s, 0, 1), STINT_OK);
        memcpy(got, exact, VOCAB * sizeof *got);
        for (size_t i = 1; i < N; i++) // by the kernels for steps
            assert_int_equal(stint_session_step(s, (uint32_t[]){0}, ids + i, 1, got + i * VOCAB),
                             STINT_OK);
        assert_true(count_close(got, exact, N, bounds[t]) >= least);
        stint_session_close(s);
    }
    stint_model_close(m);
}

static void every_cache_type_holds_latents(void **state) {
    (void)state;
    check("deepseek-v2");
    check("deepseek-v3");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_cache_type_holds_latents)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
