// SPDX-License-Identifier: Apache-2.0
// Mixtures whose experts do not all fit: what the next layer's router names is read ahead, and the
// logits are those of the mapped model, bit for bit.
#include "session/session.h"
#include "session/weights/bounded.h"
#include "support/bounded.h"
#include "support/checkpoints.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_PROMPT = 12, N_STEPS = 40, CONTEXT = 64 };

static const struct {
    const char *name, *file; // file "": the folder as it lies
} mixtures[] = {{"qwen2moe", ""},
                {"qwen2moe", "model.gguf"},
                {"qwen3moe", ""},
                {"qwen3moe", "model.gguf"},
                {"gpt-oss", "model.gguf"},
                {"gemma4-moe", ""},
                {"olmoe", ""},
                {"lfm2moe", ""},
                {"granitehybrid-moe", ""},
                {"nemotron_h-moe", ""}};

static stint_model *open_lazy(const char *name, const char *file) {
    char path[200];
    stint_model_options o = {
        .size = sizeof o, .no_tokenizer = true, .exec = STINT_EXEC_FLOAT, .lazy = true};
    stint_model *m = NULL;
    snprintf(path, sizeof path, "tests/golden/models/%s/%s", name, file);
    if (stint_model_open(ts_source(path), &o, &m) != STINT_OK)
        fail_msg("%s: %s", name, stint_error_text());
    return m;
}

static stint_session *open_session(const stint_model *m, uint64_t memory, uint32_t leave_out) {
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = CONTEXT,
                               .n_sequences = 2,
                               .memory = memory,
                               .leave_out = leave_out};
    stint_session *s = NULL;
    if (stint_session_open(m, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

// The experts of a step have room, and half of all: no KV cache is lent, which would grow it.
static struct st_slices *halve(stint_session *s) {
    struct st_slices *slices = &s->bounded->slices;
    uint32_t n = slices->regions[ST_REGION_STREAM].n_ids;
    assert_true(n > 0);
    st_slices_resize(slices, ST_REGION_STREAM, n / 2);
    return slices;
}

static void step(stint_session *s, const int32_t *ids, float *logits) {
    const uint32_t sequences[] = {0, 1};
    if (stint_session_step(s, sequences, ids, 2, logits) != STINT_OK)
        fail_msg("%s", stint_error_text());
}

static void compare(const char *name, const char *file, uint32_t leave_out,
                    stint_memory_info *info) {
    stint_model *mapped = ts_golden_model(name, file), *lazy = open_lazy(name, file);
    stint_session *a = open_session(mapped, 0, 0);
    stint_session *b = open_session(lazy, (uint64_t)256 << 20, leave_out);
    size_t vocab = mapped->config.vocab;
    float *logits = malloc(4 * vocab * sizeof *logits);
    int32_t prompt[N_PROMPT], ids[2];
    for (size_t i = 0; i < N_PROMPT; i++) prompt[i] = (int32_t)ts_random_below(vocab);
    halve(b);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(stint_session_eval(a, i, prompt, N_PROMPT, false, NULL), STINT_OK);
        assert_int_equal(stint_session_eval(b, i, prompt, N_PROMPT, false, NULL), STINT_OK);
    }
    for (int i = 0; i < N_STEPS; i++) {
        for (size_t k = 0; k < 2; k++) ids[k] = (int32_t)ts_random_below(vocab);
        step(a, ids, logits);
        step(b, ids, logits + 2 * vocab);
        if (memcmp(logits, logits + 2 * vocab, 2 * vocab * sizeof *logits) != 0)
            fail_msg("%s/%s: step %d has other logits", name, file, i);
    }
    *info = (stint_memory_info){.size = sizeof *info};
    assert_int_equal(stint_session_memory(b, info), STINT_OK);
    free(logits);
    stint_session_close(a);
    stint_session_close(b);
    stint_model_close(mapped);
    stint_model_close(lazy);
}

// With some random prompts a small model finds all that it foresees in the cache.
static void the_logits_are_those_of_the_mapped_model(void **state) {
    (void)state;
    const size_t n = sizeof mixtures / sizeof *mixtures;
    size_t n_foreseen = 0;
    stint_memory_info info;
    for (size_t i = 0; i < n; i++) {
        compare(mixtures[i].name, mixtures[i].file, 0, &info);
        n_foreseen += info.foreseen > 0.0 && info.foreseen_used > 0.0;
        if (!(info.hit_rate > 0.0 && info.hit_rate < 1.0 && info.bytes_per_step > 0.0 &&
              info.foreseen >= 0.0 && info.foreseen <= 1.0 && info.foreseen_used >= 0.0 &&
              info.foreseen_used <= 1.0))
            fail_msg("%s/%s: hit rate %f, %f bytes per step, foreseen %f, used %f",
                     mixtures[i].name, mixtures[i].file, info.hit_rate, info.bytes_per_step,
                     info.foreseen, info.foreseen_used);
    }
    assert_true(2 * n_foreseen > n);
}

static void without_the_pipeline_nothing_is_foreseen(void **state) {
    (void)state;
    stint_memory_info info;
    compare("qwen2moe", "", STINT_LEAVE_PIPELINE, &info);
    assert_true(info.foreseen == 0.0 && info.foreseen_used == 0.0 && info.hit_rate > 0.0);
}

// Then the routers need not be asked twice.
static void nothing_is_foreseen_where_all_fit(void **state) {
    (void)state;
    stint_model *m = open_lazy("qwen2moe", "");
    stint_session *s = open_session(m, (uint64_t)256 << 20, 0);
    stint_memory_info info = {.size = sizeof info};
    for (int i = 0; i < N_STEPS; i++) step(s, (int32_t[]){i, i + 1}, NULL);
    assert_int_equal(stint_session_memory(s, &info), STINT_OK);
    assert_true(info.foreseen == 0.0 && s->bounded->slices.foresight.read == 0);
    stint_session_close(s);
    stint_model_close(m);
}

// ---- A package that is damaged while a session runs

static void prepare(uint32_t bits_low, uint32_t bits_high) {
    static int32_t ids[400];
    stint_prepare_options o = {.size = sizeof o,
                               .ids = ids,
                               .n_ids = 400,
                               .n_tokens = 400,
                               .bits_low = bits_low,
                               .bits_high = bits_high,
                               .quantizer = "uniform"};
    stint_model_options lazy = {.size = sizeof lazy, .no_tokenizer = true, .lazy = true};
    snprintf(ts_bounded.package, sizeof ts_bounded.package, "%s/m.stint", ts_temp_folder());
    for (size_t i = 0; i < 400; i++) ids[i] = (int32_t)ts_random_below(48);
    if (stint_prepare(ts_source("tests/golden/models/qwen2moe"), ts_bounded.package, &o, NULL) !=
            STINT_OK ||
        stint_model_open(ts_bounded.package, &lazy, &ts_bounded.lazy) != STINT_OK)
        fail_msg("%s", stint_error_text());
}

// Steps with the same tokens each time, so that the same experts run. logits [N_STEPS, vocab]
static stint_status run_steps(stint_session *s, float *logits) {
    assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
    for (int i = 0; i < N_STEPS; i++) {
        const int32_t id = (int32_t)(7 * i % 48);
        ST_TRY(stint_session_step(s, &(uint32_t){0}, &id, 1, logits + (size_t)i * 48));
    }
    return STINT_OK;
}

static bool is_of_expert(const char *section) {
    const char *end = strrchr(section, '.');
    return strstr(section, ".experts.") && strcmp(end, ".weight") == 0;
}

// Returns whether it was found by the session that ran.
static bool damage(stint_session *s, const struct st_section *section, const float *wanted) {
    static float got[N_STEPS * 48];
    size_t at = ts_random_below((uint32_t)section->bytes);
    ts_bounded_flip(section->name, at);
    stint_status status = run_steps(s, got);
    if (status == STINT_OK) assert_memory_equal(got, wanted, sizeof got);
    if (status != STINT_OK) {
        assert_int_equal(status, STINT_E_FORMAT);
        assert_non_null(strstr(stint_error_text(), section->name));
    }
    ts_bounded_flip(section->name, at);
    if (run_steps(s, got) != STINT_OK) // it was read ahead meanwhile
        assert_int_equal(run_steps(s, got), STINT_OK);
    assert_memory_equal(got, wanted, sizeof got);
    return status != STINT_OK;
}

static void damaged_experts_are_found_where_they_are_needed(void **state) {
    (void)state;
    static float wanted[N_STEPS * 48];
    prepare(0, 0);
    stint_session *s = open_session(ts_bounded.lazy, (uint64_t)256 << 20, 0);
    halve(s);
    assert_int_equal(run_steps(s, wanted), STINT_OK);
    const struct st_package *package = ts_bounded.lazy->checkpoint.package;
    size_t n = 0, n_found = 0;
    for (size_t i = 0; i < st_package_count(package); i++) {
        const struct st_section *section = st_package_at(package, i);
        if (!is_of_expert(section->name)) continue;
        n++;
        n_found += damage(s, section, wanted);
    }
    assert_true(n > 8 && n_found > 0 && s->bounded->slices.foresight.used > 0);
    stint_session_close(s);
    stint_model_close(ts_bounded.lazy);
}

// ---- Nested weights, of which nothing is pinned

// The least bound in steps of 8 KiB, as what is left of it is pinned.
static stint_session *open_least(const stint_model *m, const char *schedule) {
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = CONTEXT,
                               .schedule = schedule,
                               .memory = (uint64_t)256 << 20};
    stint_session *s = NULL, *smaller;
    for (uint64_t by = (uint64_t)64 << 20; by >= 8 << 10; by /= 2)
        while (by < o.memory) {
            o.memory -= by;
            if (stint_session_open(m, &o, &smaller) != STINT_OK) {
                o.memory += by;
                break;
            }
            stint_session_close(s);
            s = smaller;
        }
    assert_non_null(s);
    return s;
}

static void nested_experts_are_foreseen_too(void **state) {
    (void)state;
    static float wanted[N_STEPS * 48], got[N_STEPS * 48];
    stint_model *whole = NULL;
    prepare(2, 4);
    const stint_model_options plain = {.size = sizeof plain, .no_tokenizer = true};
    assert_int_equal(stint_model_open(ts_bounded.package, &plain, &whole), STINT_OK);
    const stint_session_options o = {
        .size = sizeof o, .n_threads = 2, .n_context = CONTEXT, .schedule = "uniform:3"};
    stint_session *a = NULL, *b = open_least(ts_bounded.lazy, "uniform:3");
    assert_int_equal(stint_session_open(whole, &o, &a), STINT_OK);
    const stint_precision three = {
        .size = sizeof three, .prefill = 3, .n_steps = 1, .steps = {{3, 0}}};
    assert_int_equal(stint_session_set_precision(a, &three), STINT_OK);
    assert_int_equal(stint_session_set_precision(b, &three), STINT_OK);
    assert_int_equal(run_steps(a, wanted), STINT_OK);
    assert_int_equal(run_steps(b, got), STINT_OK);
    assert_memory_equal(got, wanted, sizeof got);
    assert_true(b->bounded->slices.foresight.read > 0 && b->bounded->slices.foresight.used > 0);
    stint_session_close(a);
    stint_session_close(b);
    stint_model_close(whole);
    stint_model_close(ts_bounded.lazy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_logits_are_those_of_the_mapped_model),
        cmocka_unit_test(without_the_pipeline_nothing_is_foreseen),
        cmocka_unit_test(nothing_is_foreseen_where_all_fit),
        cmocka_unit_test(damaged_experts_are_found_where_they_are_needed),
        cmocka_unit_test(nested_experts_are_foreseen_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
