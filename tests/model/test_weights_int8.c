// SPDX-License-Identifier: Apache-2.0
// Binding INT8 linears from sections that are right, missing, or not what the config says.
#include "model/weights_int8.h"
#include "model/preset_int8.h"
#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct st_config small_config(void) {
    struct st_config c = {.n_layers = 2,
                          .n_heads = 3,
                          .n_kv_heads = 1,
                          .head_dim = 8,
                          .hidden = 20,
                          .embed = 20,
                          .ffn = 40,
                          .vocab = 50,
                          .flags = ST_ARCH_GATED};
    assert_int_equal(st_arch_find_hf("llama", &c.arch), STINT_OK);
    return c;
}

static void names_and_shapes_follow_the_config(void **state) {
    (void)state;
    struct st_config c = small_config();
    struct st_linear_op linear_op;
    char name[ST_INT8_NAME_BYTES];
    assert_false(st_int8_shape(ST_INT8_QKV, &c, 0, 0, &linear_op));
    assert_int_equal(linear_op.n_parts, 3);
    assert_int_equal(linear_op.rows[0], 24);
    assert_int_equal(linear_op.rows[2], 8);
    assert_int_equal(linear_op.weight.n_in, 20);
    assert_int_equal(linear_op.weight.n_panels, 2 + 1 + 1);
    c.flags |= ST_ARCH_QKV_BIAS;
    assert_true(st_int8_shape(ST_INT8_QKV, &c, 0, 0, &linear_op));
    assert_false(st_int8_shape(ST_INT8_UP, &c, 0, 0, &linear_op));
    assert_int_equal(linear_op.epilogue, ST_EPILOGUE_GATED);
    assert_int_equal(linear_op.weight.n_panels, 2 * 64 / 16);
    c.flags = 0;
    st_int8_shape(ST_INT8_UP, &c, 0, 0, &linear_op);
    assert_int_equal(linear_op.epilogue, ST_EPILOGUE_ACT);
    assert_int_equal(linear_op.weight.n_panels, 3);
    st_int8_name(ST_INT8_DOWN, &c, 7, 0, name);
    assert_string_equal(name, "layers.7.down");
    c.n_experts = 4;
    st_int8_name(ST_INT8_DOWN, &c, 7, 3, name);
    assert_string_equal(name, "layers.7.experts.3.down");
    st_int8_name(ST_INT8_QKV, &c, 7, 3, name);
    assert_string_equal(name, "layers.7.qkv");
    st_int8_name(ST_INT8_HEAD, &c, 0, 0, name);
    assert_string_equal(name, "head");
}

// Sections from memory, one of which may be spoiled.
struct sections {
    const char *spoiled; // its name; NULL: none
    float value;         // what it holds then; 0: it is absent
    const char *columns; // the linear that has shadow columns, each token's scale in spite of them
    void *data[256];
    size_t n;
};

static stint_status find(void *context, const char *name, bool required,
                         struct st_section *section) {
    struct sections *s = context;
    bool spoiled = s->spoiled && strcmp(name, s->spoiled) == 0;
    size_t n_name = s->columns ? strlen(s->columns) : 0;
    bool its = n_name && strncmp(name, s->columns, n_name) == 0;
    if (!required && !(its && strcmp(name + n_name, ST_INT8_COLUMNS) == 0)) return STINT_OK;
    if (spoiled && s->value == 0.0f)
        return st_fail(STINT_E_FORMAT, "section '%s' is missing", name);
    assert_int_equal(st_section_bytes(section, &section->bytes), STINT_OK);
    float *data = calloc(1, section->bytes);
    if (section->type == ST_SECTION_F32)
        for (size_t i = 0; i < section->bytes / sizeof *data; i++)
            data[i] = spoiled ? s->value : 0.5f;
    if (its && strcmp(name + n_name, ST_INT8_INPUT) == 0) {
        data[0] = 2.0f;
        data[1] = 0.0f;
    }
    if (its && strcmp(name + n_name, ST_INT8_HOT) == 0) memset(data, 0xff, section->bytes); // -1
    assert_true(s->n < 256);
    s->data[s->n++] = data;
    section->data = data;
    return STINT_OK;
}

static stint_status bind(struct sections *s, const struct st_config *config,
                         struct st_weights_int8 *weights, struct st_arena *arena) {
    struct st_int8_source source = {.find = find, .context = s};
    struct st_arena measure = st_arena_measure();
    stint_status status = st_weights_int8_bind(&source, config, &measure, weights);
    if (status != STINT_OK) return status;
    assert_int_equal(st_arena_open(arena, measure.used), STINT_OK);
    return st_weights_int8_bind(&source, config, arena, weights);
}

static void drop(struct sections *s, struct st_arena *arena) {
    for (size_t i = 0; i < s->n; i++) free(s->data[i]);
    st_arena_close(arena);
}

static void scales_become_one_factor(void **state) {
    (void)state;
    struct st_config c = small_config();
    struct sections s = {0};
    struct st_arena arena = {0};
    struct st_weights_int8 w = {0};
    assert_int_equal(bind(&s, &c, &w, &arena), STINT_OK);
    assert_true(w.layers[1].o.weight.factor[19] == 0.25f);
    assert_true(w.head.weight.input_scale == 0.5f);
    assert_non_null(w.layers[0].ffn[0].down.weight.panels);
    assert_null(w.layers[0].qkv.weight.bias);
    assert_null(w.head.weight.bias);
    drop(&s, &arena);
}

static void bad_scales_are_refused(void **state) {
    (void)state;
    const float bad[] = {-1.0f, NAN, INFINITY, 0.0f};
    const char *const names[] = {"layers.1.up.scale", "layers.0.qkv.input", "head.scale"};
    struct st_config c = small_config();
    for (size_t i = 0; i < 4; i++)
        for (size_t n = 0; n < 3; n++) {
            struct sections s = {.spoiled = names[n], .value = bad[i]};
            struct st_arena arena = {0};
            struct st_weights_int8 w = {0};
            assert_int_equal(bind(&s, &c, &w, &arena), STINT_E_FORMAT);
            assert_non_null(strstr(stint_error_text(), names[n]));
            drop(&s, &arena);
        }
}

static void columns_beside_scales_of_tokens_are_refused(void **state) {
    (void)state;
    struct st_config c = small_config();
    struct sections s = {.columns = "layers.1.down"};
    struct st_arena arena = {0};
    struct st_weights_int8 w = {0};
    assert_int_equal(bind(&s, &c, &w, &arena), STINT_E_FORMAT);
    assert_non_null(strstr(stint_error_text(), "'layers.1.down.columns': prepare the package"));
    drop(&s, &arena);
}

static void a_wide_linear_is_refused(void **state) {
    (void)state;
    struct st_config c = small_config();
    struct sections s = {0};
    struct st_arena arena = {0};
    struct st_weights_int8 w = {0};
    c.ffn = ST_INT8_MAX_K + 1;
    assert_int_equal(bind(&s, &c, &w, &arena), STINT_E_UNSUPPORTED);
    assert_non_null(strstr(stint_error_text(), "'layers.0.down' has 65537 inputs"));
    drop(&s, &arena);
}

static void random_weights_are_the_same_each_time(void **state) {
    (void)state;
    struct st_config c = small_config();
    struct st_preset_int8 *shape = NULL;
    struct st_weights_int8 a = {0}, b = {0};
    struct st_arena measure = st_arena_measure(), first, second;
    assert_int_equal(st_preset_int8_open(&c, (struct st_nested_range){0, 0}, NULL, NULL, &shape),
                     STINT_OK);
    assert_true(st_preset_int8_bytes(shape) > 0);
    struct st_int8_source source = {.find = st_preset_int8_find, .context = shape};
    st_preset_int8_rewind(shape);
    assert_int_equal(st_weights_int8_bind(&source, &c, &measure, &a), STINT_OK);
    assert_int_equal(st_arena_open(&first, measure.used), STINT_OK);
    assert_int_equal(st_arena_open(&second, measure.used), STINT_OK);
    st_preset_int8_rewind(shape);
    assert_int_equal(st_weights_int8_bind(&source, &c, &first, &a), STINT_OK);
    st_preset_int8_rewind(shape);
    assert_int_equal(st_weights_int8_bind(&source, &c, &second, &b), STINT_OK);
    assert_ptr_equal(a.layers[1].o.weight.panels, b.layers[1].o.weight.panels);
    assert_ptr_not_equal(a.layers[1].o.weight.panels, b.layers[0].o.weight.panels);
    const int8_t *w = a.layers[0].qkv.weight.panels;
    int min = 0;
    for (size_t i = 0; i < st_int8_panel_bytes(20); i++) min = w[i] < min ? w[i] : min;
    assert_in_range(-min, 100, 127);
    st_arena_close(&first);
    st_arena_close(&second);
    st_preset_int8_close(shape);
    st_preset_int8_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_shapes_follow_the_config),
        cmocka_unit_test(scales_become_one_factor),
        cmocka_unit_test(bad_scales_are_refused),
        cmocka_unit_test(columns_beside_scales_of_tokens_are_refused),
        cmocka_unit_test(a_wide_linear_is_refused),
        cmocka_unit_test(random_weights_are_the_same_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
