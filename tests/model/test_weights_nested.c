// SPDX-License-Identifier: Apache-2.0
// Nested weights in their places, and what is refused.
#include "device/weight_set.h"
#include "model/preset_int8.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct st_config small_config(void) {
    struct st_config c = {.n_layers = 2,
                          .n_heads = 2,
                          .n_kv_heads = 1,
                          .head_dim = 10,
                          .hidden = 20,
                          .embed = 20,
                          .ffn = 30,
                          .vocab = 50,
                          .flags = ST_ARCH_GATED};
    assert_int_equal(st_arch_find_hf("llama", &c.arch), STINT_OK);
    return c;
}

// Makes each section that is asked for; one of them as the test wants it.
struct sections {
    int32_t range[2];
    const int32_t *bits; // or NULL
    const char *old;     // a section that older versions wrote; or NULL
    const char *spoiled; // this one
    const void *data;    // holds this; NULL: it is missing
    bool outliers;       // there are some
    int32_t stored;      // nested.stored; 0: there is none
    void *made[256];
    size_t n;
};

static stint_status find(void *context, const char *name, bool required,
                         struct st_section *section) {
    struct sections *s = context;
    bool outliers = strstr(name, "outlier") != NULL;
    if (strcmp(name, ST_NESTED_PRECISIONS) == 0) section->data = s->range[1] ? s->range : NULL;
    if (s->old && strcmp(name, s->old) == 0) section->data = s->range;
    if (strcmp(name, ST_NESTED_BITS) == 0) section->data = s->bits;
    if (strcmp(name, ST_NESTED_STORED_BITS) == 0) section->data = s->stored ? &s->stored : NULL;
    if (section->data || (!required && !(outliers && s->outliers))) return STINT_OK;
    if (s->spoiled && strcmp(name, s->spoiled) == 0) {
        section->data = s->data;
        if (s->data || !required) return STINT_OK;
        return st_fail(STINT_E_FORMAT, "section '%s' is missing", name);
    }
    assert_int_equal(st_section_bytes(section, &section->bytes), STINT_OK);
    float *data = calloc(1, section->bytes);
    if (section->type == ST_SECTION_F32)
        for (size_t i = 0; i < section->bytes / sizeof *data; i++) data[i] = 0.5f;
    if (strstr(name, "outlier_rows"))
        for (size_t i = 0; i < section->bytes / 4; i++) ((int32_t *)data)[i] = (int32_t)i;
    assert_true(s->n < 256);
    s->made[s->n++] = data;
    section->data = data;
    return STINT_OK;
}

struct bound {
    struct st_layer layers[2];
    struct st_ffn_weight ffn[2];
    struct st_weights weights;
    struct st_nested_range range;
    struct st_arena arena;
};

// first: q, k, v and o of the first layer, or NULL.
static stint_status bind(struct sections *s, struct bound *b, struct st_nested_weight first[4]) {
    struct st_config c = small_config();
    struct st_int8_source source = {.find = find, .context = s};
    struct st_arena measure = st_arena_measure();
    struct st_weights nothing = {0};
    memset(b, 0, sizeof *b);
    stint_status status = st_weights_nested_bind(&source, &c, true, &measure, &nothing, &b->range);
    if (status == STINT_OK) {
        assert_int_equal(st_arena_open(&b->arena, measure.used + 64), STINT_OK);
        for (int i = 0; i < 2; i++) b->layers[i].ffn = &b->ffn[i];
        b->weights.layers = b->layers;
        status = st_weights_nested_bind(&source, &c, true, &b->arena, &b->weights, &b->range);
    }
    const struct st_layer *l = b->layers;
    const struct st_linear_weight *parts[] = {&l->q, &l->k, &l->v, &l->o};
    for (size_t i = 0; i < 4 && first && status == STINT_OK; i++) first[i] = *parts[i]->nested;
    st_arena_close(&b->arena);
    for (size_t i = 0; i < s->n; i++) free(s->made[i]);
    s->n = 0;
    return status;
}

static void names_say_layer_expert_and_part(void **state) {
    (void)state;
    char name[ST_INT8_NAME_BYTES];
    struct st_config c = small_config();
    st_nested_name(ST_INT8_QKV, 1, &c, 3, 0, name);
    assert_string_equal(name, "layers.3.k");
    st_nested_name(ST_INT8_UP, 0, &c, 3, 0, name);
    assert_string_equal(name, "layers.3.gate");
    c.flags = 0; // its only part is up
    st_nested_name(ST_INT8_UP, 0, &c, 3, 0, name);
    assert_string_equal(name, "layers.3.up");
    c.n_experts = 4;
    st_nested_name(ST_INT8_DOWN, 0, &c, 0, 2, name);
    assert_string_equal(name, "layers.0.experts.2.down");
    st_nested_name(ST_INT8_HEAD, 0, &c, 0, 0, name);
    assert_string_equal(name, "head");
}

static void every_linear_gets_its_own(void **state) {
    (void)state;
    struct bound b;
    struct sections s = {.range = {2, 5}, .outliers = true};
    assert_int_equal(bind(&s, &b, NULL), STINT_OK);
    assert_int_equal(b.range.low, 2);
    assert_int_equal(b.range.high, 5);
    const struct st_linear_weight *all[] = {&b.layers[1].q, &b.layers[1].k, &b.layers[0].v,
                                            &b.layers[0].o, &b.ffn[1].gate, &b.ffn[0].up,
                                            &b.ffn[1].down, &b.weights.head};
    for (size_t i = 0; i < 8; i++) assert_true(st_linear_exists(all[i]));
    s = (struct sections){.range = {0, 0}};
    assert_int_equal(bind(&s, &b, NULL), STINT_OK);
    assert_int_equal(b.range.high, 0);
    assert_false(st_linear_exists(&b.layers[1].q));
}

static void damaged_ones_are_refused(void **state) {
    (void)state;
    static const float bad[64] = {0.5f, NAN}, negative[64] = {-1.0f};
    int32_t low[45], high[45], falling_bits[45];
    for (size_t i = 0; i < 45; i++) low[i] = high[i] = falling_bits[i] = 4;
    low[1] = 1;
    high[16] = 8;
    falling_bits[20] = 5;
    static const int32_t falling[21] = {0, 3, 2}, none[21] = {0};
    static const int32_t beyond[21] = {0, 20}, before[21] = {0, -1};
    const struct {
        struct sections s;
        const char *piece;
    } cases[] = {
        {{.range = {1, 4}}, "expected 2 to 7"},
        {{.range = {4, 3}}, "expected 2 to 7"},
        {{.range = {2, 8}}, "expected 2 to 7"},
        {{.range = {2, 4}, .spoiled = "layers.1.k.nested"}, "'layers.1.k.nested' is missing"},
        {{.range = {2, 4}, .spoiled = "layers.0.q.nested_groups3"}, "'layers.0.q.nested_groups3'"},
        {{.range = {2, 4}, .bits = low}, "'nested.bits'[0, 1] is 1: expected 2 to 7"},
        {{.range = {2, 4}, .bits = high}, "'nested.bits'[1, 1] is 8: expected 4 to 7"},
        {{.range = {2, 4}, .bits = falling_bits}, "'nested.bits'[2, 5] is 4: expected 5 to 7"},
        {{.range = {2, 4}, .spoiled = "layers.0.v.nested_rows", .data = bad}, "positive"},
        {{.range = {2, 4}, .spoiled = "layers.0.v.nested_rows", .data = negative}, "positive"},
        {{.range = {2, 4},
          .outliers = true,
          .spoiled = "layers.0.o.nested_outlier_rows",
          .data = falling},
         "ends with 0"},
        {{.range = {2, 4},
          .outliers = true,
          .spoiled = "layers.0.o.nested_outlier_rows",
          .data = none},
         "ends with 0"},
        {{.range = {2, 4},
          .outliers = true,
          .spoiled = "layers.0.o.nested_outlier_columns",
          .data = beyond},
         "there are 20 columns"},
        {{.range = {2, 4},
          .outliers = true,
          .spoiled = "layers.0.o.nested_outlier_columns",
          .data = before},
         "there are 20 columns"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bound b;
        struct sections s = cases[i].s;
        assert_int_equal(bind(&s, &b, NULL), STINT_E_FORMAT);
        if (!strstr(stint_error_text(), cases[i].piece))
            fail_msg("case %zu: '%s' lacks '%s'", i, stint_error_text(), cases[i].piece);
    }
}

static void linears_have_bits_of_their_own(void **state) {
    (void)state;
    int32_t bits[45];
    for (size_t i = 0; i < 45; i++) bits[i] = 2 + (int32_t)(i / 15);
    bits[2] = bits[17] = 4; // v
    bits[32] = 6;
    bits[18] = 4; // o, as at the highest precision
    struct bound b;
    struct sections s = {.range = {2, 4}, .bits = bits};
    struct st_nested_weight w[4];
    assert_int_equal(bind(&s, &b, w), STINT_OK);
    const uint8_t wanted[4][3] = {{2, 3, 4}, {2, 3, 4}, {4, 4, 6}, {2, 4, 4}};
    for (size_t i = 0; i < 4; i++) {
        assert_memory_equal(w[i].bits + 2, wanted[i], 3);
        assert_int_equal(w[i].low, wanted[i][0]);
        assert_int_equal(w[i].high, wanted[i][2]);
    }
    s.bits = NULL; // as many as the precision of the run
    assert_int_equal(bind(&s, &b, w), STINT_OK);
    assert_memory_equal(w[2].bits + 2, wanted[0], 3);
}

static void old_packages_are_refused_by_name(void **state) {
    (void)state;
    struct bound b;
    const struct sections old[] = {{.old = "nested.range"},
                                   {.range = {2, 4}, .old = "nested.extra"}};
    for (size_t i = 0; i < 2; i++) {
        struct sections s = old[i];
        assert_int_equal(bind(&s, &b, NULL), STINT_E_UNSUPPORTED);
        assert_non_null(strstr(stint_error_text(), "make the package again with 'stint prepare'"));
    }
}

static void rows_of_outliers_rise(void **state) {
    (void)state;
    int32_t rows[21];
    for (int32_t i = 0; i < 21; i++) rows[i] = i;
    struct bound b;
    struct sections s = {.range = {2, 4},
                         .outliers = true,
                         .spoiled = "layers.0.o.nested_outlier_rows",
                         .data = rows};
    assert_int_equal(bind(&s, &b, NULL), STINT_OK);
    rows[5] = 9;
    assert_int_equal(bind(&s, &b, NULL), STINT_E_FORMAT);
    assert_non_null(strstr(stint_error_text(), "is 6, after 9"));
    rows[5] = 5;
    rows[0] = 1;
    assert_int_equal(bind(&s, &b, NULL), STINT_E_FORMAT);
}

static stint_status bind_sets(struct sections *s, struct st_arena *arena,
                              struct st_weights_int8 *int8) {
    struct st_config c = small_config();
    struct st_int8_source source = {.find = find, .context = s};
    struct st_arena measure = st_arena_measure();
    struct st_arena *arenas[2] = {&measure, arena};
    stint_status status = STINT_OK;
    for (int i = 0; i < 2 && status == STINT_OK; i++) {
        if (i) assert_int_equal(st_arena_open(arena, measure.used), STINT_OK);
        status = st_weights_int8_bind(&source, &c, arenas[i], int8);
        if (status == STINT_OK) status = st_weight_sets_bind(&source, &c, true, arenas[i], int8);
    }
    return status;
}

static void free_made(struct sections *s, struct st_arena *arena) {
    st_arena_close(arena);
    for (size_t i = 0; i < s->n; i++) free(s->made[i]);
    s->n = 0;
}

static void packed_linears_are_made_of_codes(void **state) {
    (void)state;
    struct sections s = {.range = {2, 4}, .stored = 8};
    struct st_arena arena = {0};
    struct st_weights_int8 int8 = {0};
    assert_int_equal(bind_sets(&s, &arena, &int8), STINT_OK);
    static const uint32_t n_parts[] = {3, 1, 2, 1, 1};
    for (int role = 0; role < ST_INT8_ROLES; role++) {
        const struct st_linear_op *op = st_int8_linear_op(&int8, (enum st_int8_role)role, 1, 0);
        assert_null(op->weight.panels);
        assert_int_equal(op->weight.set->n_parts, n_parts[role]);
        assert_int_equal(op->weight.set->codes[0].stored, 8);
    }
    free_made(&s, &arena);
    s.stored = 0;
    assert_int_equal(bind_sets(&s, &arena, &int8), STINT_OK);
    assert_non_null(int8.head.weight.panels);
    assert_null(int8.head.weight.set);
    free_made(&s, &arena);
    s.stored = 6;
    assert_int_equal(bind_sets(&s, &arena, &int8), STINT_E_FORMAT);
    assert_non_null(strstr(stint_error_text(), "'nested.stored' is 6: expected 7 or 8"));
    free_made(&s, &arena);
    s = (struct sections){.stored = 7};
    assert_int_equal(bind_sets(&s, &arena, &int8), STINT_E_FORMAT);
    assert_non_null(strstr(stint_error_text(), "no nested weights"));
    free_made(&s, &arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_say_layer_expert_and_part),
        cmocka_unit_test(every_linear_gets_its_own),
        cmocka_unit_test(damaged_ones_are_refused),
        cmocka_unit_test(linears_have_bits_of_their_own),
        cmocka_unit_test(old_packages_are_refused_by_name),
        cmocka_unit_test(rows_of_outliers_rise),
        cmocka_unit_test(packed_linears_are_made_of_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
