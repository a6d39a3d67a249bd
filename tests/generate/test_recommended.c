// SPDX-License-Identifier: Apache-2.0
// What generation_config.json and a GGUF's metadata say about sampling.
#include "generate/recommended.h"
#include "support/gguf_builder.h"
#include "support/support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static uint64_t read_json(const char *text, stint_sampling *sampling) {
    struct st_checkpoint checkpoint = {.source = ST_SOURCE_HF};
    if (text) checkpoint.generation_config = json_loads(text, 0, NULL);
    assert_int_equal(checkpoint.generation_config != NULL, text != NULL);
    uint64_t found = st_sampling_recommended(&checkpoint, sampling);
    json_decref(checkpoint.generation_config);
    return found;
}

static uint64_t bit_of(const char *name) {
    const stint_parameter *p;
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++)
        if (strcmp(p->name, name) == 0) return UINT64_C(1) << i;
    fail_msg("no parameter %s", name);
    return 0;
}

static void assert_general(const stint_sampling *s) {
    const stint_sampling expected = {
        .size = sizeof expected, .temperature = 0.8f, .top_p = 0.95f, .min_p = 0.05f};
    assert_memory_equal(s, &expected, sizeof expected);
}

static void the_file_s_values_hold(void **state) {
    (void)state;
    stint_sampling s;
    uint64_t found = read_json("{\"do_sample\":true,\"temperature\":0.6,\"top_p\":0.9,\"top_k\":20,"
                               "\"repetition_penalty\":1.05,\"eos_token_id\":[1,2]}",
                               &s);
    assert_true(s.temperature == 0.6f && s.top_p == 0.9f && s.repeat_penalty == 1.05f);
    assert_int_equal(s.top_k, 20);
    assert_true(s.min_p == 0.0f); // the general default is not mixed in
    assert_true(found == (bit_of("temperature") | bit_of("top_p") | bit_of("top_k") |
                          bit_of("repeat_penalty")));
}

static void a_file_without_temperature_means_1(void **state) {
    (void)state;
    stint_sampling s;
    uint64_t found = read_json("{\"top_k\":64,\"temperature\":null}", &s);
    assert_true(s.temperature == 1.0f && s.top_k == 64);
    assert_true(found == (bit_of("temperature") | bit_of("top_k")));
}

static void do_sample_false_is_greedy(void **state) {
    (void)state;
    stint_sampling s;
    assert_true(read_json("{\"do_sample\":false,\"temperature\":0.7}", &s) ==
                bit_of("temperature"));
    assert_true(s.temperature == 0.0f);
    assert_true(read_json("{\"do_sample\":false}", &s) == bit_of("temperature"));
    assert_true(s.temperature == 0.0f);
}

static void without_any_the_general_ones_hold(void **state) {
    (void)state;
    static const char *const silent[] = {NULL, "{}", "{\"eos_token_id\":2,\"do_sample\":true}",
                                         "{\"temperature\":\"hot\",\"top_k\":[1],\"seed\":7}"};
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        stint_sampling s;
        assert_true(read_json(silent[i], &s) == 0);
        assert_general(&s);
    }
}

static void what_is_out_of_range_is_ignored(void **state) {
    (void)state;
    stint_sampling s;
    assert_true(read_json("{\"temperature\":-1,\"top_p\":7,\"top_k\":-1,\"min_p\":1e300}", &s) ==
                0);
    assert_general(&s);
    assert_true(read_json("{\"top_k\":1.5,\"top_p\":0.5}", &s) ==
                (bit_of("temperature") | bit_of("top_p")));
    assert_true(s.top_k == 0 && s.top_p == 0.5f);
}

static void a_gguf_has_names_of_its_own(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    ts_gguf_header(&file, 3, 0, 7);
    ts_gguf_key_f32(&file, "general.sampling.temp", 0.6f);
    ts_gguf_key(&file, "general.sampling.top_k", ST_GGUF_I32);
    ts_gguf_u32(&file, 20);
    ts_gguf_key_f32(&file, "general.sampling.penalty_repeat", 1.1f);
    ts_gguf_key(&file, "general.sampling.penalty_last_n", ST_GGUF_I32);
    ts_gguf_u32(&file, UINT32_MAX); // -1: all, which this one cannot say
    ts_gguf_key_f32(&file, "general.sampling.xtc_probability", 0.5f);
    ts_gguf_key_text(&file, "general.sampling.sequence", "penalties;top_k");
    ts_gguf_key_text(&file, "general.sampling.top_p", "much");
    struct st_checkpoint checkpoint = {.source = ST_SOURCE_GGUF};
    struct st_map map = ts_exact_map(file.data, file.n);
    assert_int_equal(st_gguf_open("x.gguf", &map, NULL, &checkpoint.gguf), STINT_OK);
    stint_sampling s;
    uint64_t found = st_sampling_recommended(&checkpoint, &s);
    assert_true(s.temperature == 0.6f && s.repeat_penalty == 1.1f && s.xtc_probability == 0.5f);
    assert_true(s.top_k == 20 && s.repeat_last == 0 && s.top_p == 0.0f);
    assert_true(found == (bit_of("temperature") | bit_of("top_k") | bit_of("repeat_penalty") |
                          bit_of("xtc_probability")));
    st_gguf_close(checkpoint.gguf);
    free((void *)map.data);
    ts_gguf_free(&file);
}

// transformers and gguf-py write exactly these.
static void every_key_of_gguf_py_is_read(void **state) {
    (void)state;
    static const char *const keys[] = {"top_k",           "top_p",         "min_p",
                                       "xtc_probability", "xtc_threshold", "temp",
                                       "penalty_last_n",  "penalty_repeat"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const stint_parameter *p;
        size_t n = 0;
        for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++)
            n += p->gguf && strcmp(p->gguf, keys[k]) == 0;
        assert_int_equal(n, 1);
    }
    assert_true(bit_of("temperature") == 1); // recommended.c relies on it
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_s_values_hold),
        cmocka_unit_test(a_file_without_temperature_means_1),
        cmocka_unit_test(do_sample_false_is_greedy),
        cmocka_unit_test(without_any_the_general_ones_hold),
        cmocka_unit_test(what_is_out_of_range_is_ignored),
        cmocka_unit_test(a_gguf_has_names_of_its_own),
        cmocka_unit_test(every_key_of_gguf_py_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
