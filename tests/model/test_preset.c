// SPDX-License-Identifier: Apache-2.0
// Presets have as many parameters as the models that they are named after, and what is made for
// them has the type that it is to have.
#include "model/preset.h"

#include "base/size.h"
#include "kernels/dequantize.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct made {
    struct st_tensors *tensors;
    struct st_preset_weights *weights;
};

static struct made open(const struct st_preset *preset, size_t bytes) {
    struct made made;
    assert_int_equal(st_tensors_open(64, &made.tensors), STINT_OK);
    assert_int_equal(st_preset_weights_open(preset, made.tensors, bytes, &made.weights), STINT_OK);
    return made;
}

static void close(struct made *made) {
    st_preset_weights_close(made->weights);
    st_tensors_close(made->tensors);
}

// Without their weights: while nothing is made, tensors only are counted.
static uint64_t parameters(const char *name) {
    struct st_config config;
    const struct st_preset *preset;
    json_t *keep = NULL;
    assert_int_equal(st_preset_find(name, &preset), STINT_OK);
    if (st_preset_config(name, &config, &keep) != STINT_OK)
        fail_msg("%s: %s", name, stint_error_text());
    struct made made = open(preset, 0);
    struct st_tensor_source source = {
        .tensors = made.tensors, .make = st_preset_weights_make, .context = made.weights};
    struct st_arena measure = st_arena_measure();
    struct st_weights weights;
    if (st_weights_bind(&source, &config, &measure, &weights) != STINT_OK)
        fail_msg("%s: %s", name, stint_error_text());
    uint64_t n = 0;
    for (size_t i = 0; i < st_tensors_count(made.tensors); i++) {
        const struct st_tensor *t = st_tensors_at(made.tensors, i);
        n += t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
    }
    close(&made);
    json_decref(keep);
    return n;
}

static void presets_are_as_large_as_what_they_are_named_after(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t published;
    } cases[] = {
        {"qwen1.5-0.5b", 463987712},  {"qwen1.5-1.8b", 1836828672}, {"qwen2.5-0.5b", 494032768},
        {"qwen2.5-1.5b", 1543714304}, {"gemma-2b", 2506172416},     {"gemma-2-2b", 2614341888},
        {"phi-1.5", 1418270720},      {"phi-2", 2779683840},        {"tinyllama-1.1b", 1100048384},
        {"llama-3.2-1b", 1235814400}, {"lfm2.5-1.2b", 1170340608},  {"llama-2-7b", 6738415616},
        {"gpt-oss-20b", 20914757184}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t n = parameters(cases[i].name);
        if (n != cases[i].published)
            fail_msg("%s: %llu parameters, not %llu", cases[i].name, (unsigned long long)n,
                     (unsigned long long)cases[i].published);
    }
}

static void every_preset_can_be_bound(void **state) {
    (void)state;
    for (const struct st_preset *p = st_presets; p->name; p++)
        assert_true(parameters(p->name) > 100000000);
}

// Rows of 64, as experts have them.
static void make_rows(const struct st_preset *preset, const char *name, struct st_tensor *tensor,
                      struct made *made) {
    const uint64_t dims[] = {2, 3, 64};
    size_t bytes = 0;
    for (int round = 0; round < 2; round++) {
        if (round) close(made);
        *made = open(preset, bytes);
        assert_int_equal(st_preset_weights_make(made->weights, name, 3, dims, tensor), STINT_OK);
        bytes = st_preset_weights_bytes(made->weights);
    }
    st_preset_weights_fill(made->weights, NULL, NULL);
}

static void blocks_are_as_large_as_floats(void **state) {
    (void)state;
    static const enum st_dtype types[] = {ST_DTYPE_MXFP4, ST_DTYPE_Q8_0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct st_preset preset = {.name = "blocks", .part = "_blocks", .dtype = types[i]};
        struct st_tensor t;
        struct made made;
        float row[6 * 64], largest = 0.0f;
        double sum = 0.0;
        make_rows(&preset, "experts_blocks", &t, &made);
        assert_int_equal(t.dtype, types[i]);
        assert_int_equal(t.bytes, 6 * st_dtype_row_bytes(types[i], 64));
        st_dequantize_select(0)->fn[t.dtype](t.data, 0, 6 * 64, row);
        for (size_t e = 0; e < 6 * 64; e++) {
            largest = fmaxf(largest, fabsf(row[e]));
            sum += (double)row[e] * (double)row[e];
        }
        double deviation = sqrt(sum / (6 * 64));
        assert_true(largest < 0.05f && deviation > 0.01 && deviation < 0.04);
        close(&made);
    }
}

static void other_tensors_stay_bf16(void **state) {
    (void)state;
    const struct st_preset preset = {.name = "b", .part = "_blocks", .dtype = ST_DTYPE_MXFP4};
    struct st_tensor t;
    struct made made;
    make_rows(&preset, "experts_bias", &t, &made);
    assert_int_equal(t.dtype, ST_DTYPE_BF16);
    assert_int_equal(t.bytes, 6 * 64 * 2);
    close(&made);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_are_as_large_as_what_they_are_named_after),
        cmocka_unit_test(every_preset_can_be_bound),
        cmocka_unit_test(blocks_are_as_large_as_floats),
        cmocka_unit_test(other_tensors_stay_bf16),
    };
    return cmocka_run_group_tests_name("preset", tests, NULL, NULL);
}
