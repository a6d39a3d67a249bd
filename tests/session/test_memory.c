// SPDX-License-Identifier: Apache-2.0
// Sessions under a bound of memory: the same results as without one, however little there is, and a
// clear error where the file fails.
#include "session/session.h"
#include "support/support.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { N_PROMPT = 10, N_IDS = 20, CONTEXT = 64, CHUNK = 8, N_SEQUENCES = 6, N_STEPS = 8 };

static const struct variant {
    const char *title, *model;
    uint32_t neuron_bits, n_tokens; // fewer tokens, and no predictor pays
    uint32_t step_bits;             // of nested weights, after an INT8 prompt; 0: there are none
} variants[] = {
    {"dense", "models/novels-10m", 0, 512, 0},
    {"dense, 3 bits a step", "models/novels-10m", 0, 512, 3},
    {"sparse", "models/novels-10m-drelu", 8, 512, 0},
    {"sparse, 4 bits, 3 a step", "models/novels-10m-drelu", 4, 2048, 3},
};
static const struct variant *variant;
static char package[600], schedule[600];
static stint_model *whole, *piecewise;
static int32_t ids[N_IDS];
static float *wanted; // [N_IDS, vocab]

static stint_model *open_package(bool by_pieces) {
    stint_model_options o = {.size = sizeof o, .piecewise = by_pieces};
    stint_model *m = NULL;
    assert_int_equal(stint_model_open(package, &o, &m), STINT_OK);
    return m;
}

static size_t vocab(void) {
    return whole->config.vocab;
}

static const char *schedule_or_none(void) {
    return variant->step_bits ? schedule : NULL;
}

static void write_schedule(void) {
    stint_precision p = {.size = sizeof p, .prefill = 8, .n_steps = 1};
    p.steps[0].bits = variant->step_bits;
    snprintf(schedule, sizeof schedule, "%s/schedule.json", ts_temp_folder());
    if (variant->step_bits) assert_int_equal(st_schedule_write(whole, &p, schedule), STINT_OK);
}

// A step of one sequence or several, as the schedule says.
static stint_status step_all(stint_session *s, const uint32_t *sequences, const int32_t *next,
                             size_t n, float *logits) {
    return st_session_step(s, s->precision.steps[0].bits, sequences, next, n, logits);
}

static stint_session *open_session(const stint_model *model, uint64_t memory, bool predict) {
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = CONTEXT,
                               .chunk_len = CHUNK,
                               .memory = memory,
                               .schedule = schedule_or_none(),
                               .leave_out = predict ? 0 : STINT_LEAVE_PREDICTOR};
    stint_session *s = NULL;
    if (stint_session_open(model, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

// A prompt, then batches of tokens, then single ones.
static stint_status eval_all(stint_session *s, float *logits) {
    static const size_t steps[] = {N_PROMPT, 4, 3, 2, 1};
    size_t done = 0;
    ST_TRY(stint_session_truncate(s, 0, 0));
    for (size_t i = 0; done < N_IDS; done += steps[i++]) {
        struct st_eval_request e = st_eval_request_of(s, 0, ids + done, steps[i]);
        if (i) e.precision = s->precision.steps[0].bits;
        e.all = true;
        e.logits = logits + done * vocab();
        ST_TRY(st_session_eval(s, &e));
    }
    return STINT_OK;
}

static int open_models(void **state) {
    (void)state;
    const char *source = ts_shared(variant->model);
    snprintf(package, sizeof package, "%s/m.stint", ts_temp_folder());
    stint_prepare_options o = {.size = sizeof o,
                               .n_tokens = variant->n_tokens,
                               .outliers = STINT_OUTLIERS_SHARE,
                               .outlier_prune = 0.5f,
                               .neurons = variant->neuron_bits != 0,
                               .recall = 0.98f, // of so short a text
                               .neuron_bits = variant->neuron_bits,
                               .bits_low = variant->step_bits ? 2 : 0,
                               .bits_high = variant->step_bits ? 4 : 0};
    assert_int_equal(stint_prepare(source, package, &o, NULL), STINT_OK);
    whole = open_package(false);
    piecewise = open_package(true);
    write_schedule();
    for (size_t i = 0; i < N_IDS; i++) ids[i] = (int32_t)ts_random_below(vocab());
    wanted = malloc(N_IDS * vocab() * sizeof *wanted);
    stint_session *s = open_session(whole, 0, false);
    assert_int_equal(eval_all(s, wanted), STINT_OK);
    stint_session_close(s);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    stint_model_close(whole);
    stint_model_close(piecewise);
    free(wanted);
    return 0;
}

// What the error says is the least that works.
static uint64_t least_memory(uint32_t n_sequences) {
    stint_session_options o = {.size = sizeof o,
                               .n_context = CONTEXT,
                               .chunk_len = CHUNK,
                               .n_threads = 2,
                               .memory = 1,
                               .schedule = schedule_or_none(),
                               .n_sequences = n_sequences};
    stint_session *s = NULL;
    unsigned long long least = 0;
    assert_int_equal(stint_session_open(piecewise, &o, &s), STINT_E_LIMIT);
    assert_int_equal(sscanf(stint_error_text(), "memory: at least %llu MiB", &least), 1);
    o.memory = (least - 1) << 20;
    assert_int_equal(stint_session_open(piecewise, &o, &s), STINT_E_LIMIT);
    return least << 20;
}

static void any_bound_gives_the_same(void **state) {
    (void)state;
    uint64_t least = least_memory(1);
    float *got = malloc(N_IDS * vocab() * sizeof *got);
    for (uint64_t more = 0; more <= 9; more = more ? 3 * more : 1) {
        stint_session *s = open_session(piecewise, least + (more << 20), false);
        stint_memory_info info = {.size = sizeof info};
        for (int round = 0; round < 2; round++) {
            memset(got, 0, N_IDS * vocab() * sizeof *got);
            assert_int_equal(eval_all(s, got), STINT_OK);
            assert_memory_equal(got, wanted, N_IDS * vocab() * sizeof *got);
        }
        assert_int_equal(stint_session_memory(s, &info), STINT_OK);
        assert_int_equal(info.budget_bytes, least + (more << 20));
        assert_true(info.fixed_bytes + info.hot_bytes + info.cold_bytes + info.kv_bytes <=
                    info.budget_bytes);
        assert_true(info.bytes_read > 0 && info.reads > 0);
        assert_true(info.hit_rate >= 0 && info.hit_rate <= 1);
        assert_true(info.hidden_fraction >= 0 && info.hidden_fraction <= 1);
        stint_session_close(s);
    }
    free(got);
}

static void a_bound_must_be_given(void **state) {
    (void)state;
    stint_session *s = NULL;
    assert_int_equal(stint_session_open(piecewise, NULL, &s), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "bound of memory"));
    stint_session_options o = {.size = sizeof o, .memory = 100 << 20, .npu_threads = 1};
    assert_int_equal(stint_session_open(piecewise, &o, &s), STINT_E_UNSUPPORTED);
    o = (stint_session_options){.size = sizeof o, .memory = 100 << 20, .schedule = "uniform:7"};
    assert_int_equal(stint_session_open(piecewise, &o, &s),
                     variant->step_bits ? STINT_E_ARG : STINT_E_UNSUPPORTED);
    s = open_session(whole, 0, true);
    stint_memory_info info = {.size = sizeof info};
    assert_int_equal(stint_session_memory(s, &info), STINT_OK);
    assert_int_equal(info.budget_bytes, 0);
    stint_session_close(s);
}

// A bit in the middle of a section turns over while the model is open.
static void flip(const char *section, size_t offset) {
    const struct st_section *s = st_package_find(piecewise->checkpoint.package, section);
    assert_non_null(s);
    off_t at = (const unsigned char *)s->data - piecewise->checkpoint.maps->data;
    int file = open(package, O_RDWR);
    unsigned char byte;
    at += (off_t)offset;
    assert_int_equal(pread(file, &byte, 1, at), 1);
    byte ^= 16;
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    assert_int_equal(fsync(file), 0);
    close(file);
}

static void assert_damage_is_found(uint64_t memory, const char *section, size_t offset) {
    float *got = malloc(N_IDS * vocab() * sizeof *got);
    stint_session *s = open_session(piecewise, memory, false);
    assert_int_equal(eval_all(s, got), STINT_OK);
    flip(section, offset);
    // At once where it must be read again; in a session that begins anew in any case.
    stint_status status = eval_all(s, got);
    if (status == STINT_OK) assert_memory_equal(got, wanted, N_IDS * vocab() * sizeof *got);
    stint_session *other = open_session(piecewise, memory, false);
    assert_int_equal(eval_all(other, got), STINT_E_FORMAT);
    assert_non_null(strstr(stint_error_text(), section));
    assert_non_null(strstr(stint_error_text(), "m.stint"));
    flip(section, offset);
    assert_int_equal(eval_all(other, got), STINT_OK);
    assert_memory_equal(got, wanted, N_IDS * vocab() * sizeof *got);
    assert_int_equal(eval_all(s, got), STINT_OK);
    assert_memory_equal(got, wanted, N_IDS * vocab() * sizeof *got);
    stint_session_close(other);
    stint_session_close(s);
    free(got);
}

static void damage_is_found(void **state) {
    (void)state;
    uint64_t least = least_memory(1);
    assert_damage_is_found(least, "layers.3.qkv.weight", 1000);
    assert_damage_is_found(least + (64 << 20), "layers.11.up.weight", 100000);
    assert_damage_is_found(least, "head.weight", 500000);
    if (piecewise->neurons.layers) assert_damage_is_found(least, "layers.5.neurons", 200000);
}

// They are read once, when a session opens.
static void nested_weights_are_kept(void **state) {
    (void)state;
    if (!variant->step_bits) skip();
    stint_session_options o = {.size = sizeof o, .n_context = CONTEXT, .memory = 100 << 20};
    stint_precision p = {.size = sizeof p, .prefill = 8, .n_steps = 1, .steps = {{3, 0}}};
    stint_session *s = NULL;
    assert_int_equal(stint_session_open(piecewise, &o, &s), STINT_OK);
    assert_int_equal(stint_session_set_precision(s, &p), STINT_E_UNSUPPORTED);
    assert_non_null(strstr(stint_error_text(), "open it with the schedule"));
    stint_session_close(s);
    s = open_session(piecewise, 100 << 20, false);
    assert_int_equal(stint_session_set_precision(s, &p), STINT_OK);
    p.prefill = 4;
    assert_int_equal(stint_session_set_precision(s, &p), STINT_E_UNSUPPORTED);
    stint_session_close(s);
    static const char *const sections[] = {"layers.2.k.nested", "head.nested_tables"};
    for (size_t i = 0; i < 2; i++) {
        o.schedule = schedule;
        flip(sections[i], 70);
        assert_int_equal(stint_session_open(piecewise, &o, &s), STINT_E_FORMAT);
        assert_non_null(strstr(stint_error_text(), sections[i]));
        flip(sections[i], 70);
    }
}

static void a_file_cut_short_is_an_error(void **state) {
    (void)state;
    float *got = malloc(N_IDS * vocab() * sizeof *got);
    stint_session *s = open_session(piecewise, least_memory(1), false);
    assert_int_equal(eval_all(s, got), STINT_OK);
    const struct st_section *up =
        st_package_find(piecewise->checkpoint.package, "layers.0.up.weight");
    off_t at = (const unsigned char *)up->data - piecewise->checkpoint.maps->data;
    size_t bytes = piecewise->checkpoint.maps->bytes;
    int file = open(package, O_RDWR);
    unsigned char *rest = malloc(bytes - (size_t)at);
    assert_int_equal(pread(file, rest, bytes - (size_t)at, at), bytes - (size_t)at);
    assert_int_equal(ftruncate(file, at + 4096), 0);
    assert_int_equal(eval_all(s, got), STINT_E_IO);
    assert_non_null(strstr(stint_error_text(), "cut short"));
    assert_int_equal(stint_session_length(s, 0), 0);
    assert_int_equal(pwrite(file, rest, bytes - (size_t)at, at), bytes - (size_t)at);
    assert_int_equal(fsync(file), 0);
    assert_int_equal(eval_all(s, got), STINT_OK);
    assert_memory_equal(got, wanted, N_IDS * vocab() * sizeof *got);
    stint_session_close(s);
    close(file);
    free(rest);
    free(got);
}

// Of the largest logit.
static size_t best(const float *logits) {
    size_t b = 0;
    for (size_t i = 1; i < vocab(); i++) b = logits[i] > logits[b] ? i : b;
    return b;
}

static void predictors_compute_less(void **state) {
    (void)state;
    if (!piecewise->neurons.layers) skip();
    float *got = malloc(N_IDS * vocab() * sizeof *got), *again = malloc(N_IDS * vocab() * 4);
    stint_memory_info info = {.size = sizeof info};
    size_t same = 0;
    for (int round = 0; round < 2; round++) { // with much memory, with little
        uint64_t memory = round ? least_memory(1) : 200 << 20;
        stint_session *s = open_session(piecewise, memory, true);
        assert_int_equal(eval_all(s, round ? again : got), STINT_OK);
        assert_int_equal(stint_session_memory(s, &info), STINT_OK);
        stint_session_close(s);
    }
    // What is in memory has no say in which neurons are computed, but hot ones are, asked or not.
    assert_true(info.computed > 0.1 && info.computed < 0.9);
    for (size_t i = N_PROMPT; i < N_IDS; i++)
        same += best(got + i * vocab()) == best(wanted + i * vocab());
    assert_true(same >= 7); // of 10
    free(got);
    free(again);
}

static double squared_error(const float *got, const float *exact) {
    double sum = 0.0;
    for (size_t i = 0; i < (N_IDS - N_PROMPT) * vocab(); i++)
        sum += ((double)got[i] - (double)exact[i]) * ((double)got[i] - (double)exact[i]);
    return sum;
}

// In a prompt the same tokens have inputs in 8 bits.
static void steps_are_finer_than_prompts(void **state) {
    (void)state;
    if (variant->neuron_bits != 8) skip();
    size_t bytes = N_IDS * vocab() * sizeof(float), after = N_PROMPT * vocab();
    float *exact = malloc(bytes), *prompt = malloc(bytes);
    stint_model *source = NULL;
    assert_int_equal(stint_model_open(ts_shared(variant->model), NULL, &source), STINT_OK);
    stint_session *s = open_session(source, 0, false);
    assert_int_equal(stint_session_eval(s, 0, ids, N_IDS, true, exact), STINT_OK);
    stint_session_close(s);
    s = open_session(whole, 0, false);
    assert_int_equal(stint_session_eval(s, 0, ids, N_IDS, true, prompt), STINT_OK);
    stint_session_close(s);
    assert_true(squared_error(wanted + after, exact + after) <
                squared_error(prompt + after, exact + after));
    stint_model_close(source);
    free(exact);
    free(prompt);
}

// ---- Several sequences

static stint_session *open_sequences(uint32_t n, uint64_t memory) {
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = CONTEXT,
                               .chunk_len = CHUNK,
                               .memory = memory,
                               .schedule = schedule_or_none(),
                               .leave_out = STINT_LEAVE_PREDICTOR,
                               .n_sequences = n};
    stint_session *s = NULL;
    if (stint_session_open(memory ? piecewise : whole, &o, &s) != STINT_OK)
        fail_msg("%s", stint_error_text());
    return s;
}

struct text {
    int32_t ids[CONTEXT];
    size_t n_prompt;
    float *wanted; // [1 + N_STEPS, vocab] after the prompt, and after each step
};

// By itself, in a session without a bound.
static void make_text(stint_session *alone, struct text *t) {
    t->n_prompt = 1 + ts_random_below(3 * CHUNK);
    t->wanted = malloc((1 + N_STEPS) * vocab() * sizeof *t->wanted);
    for (size_t i = 0; i < CONTEXT; i++) t->ids[i] = (int32_t)ts_random_below(vocab());
    assert_int_equal(stint_session_truncate(alone, 0, 0), STINT_OK);
    assert_int_equal(st_session_prompt(alone, 0, t->ids, t->n_prompt, t->n_prompt, t->wanted),
                     STINT_OK);
    for (size_t i = 0; i < N_STEPS; i++)
        assert_int_equal(step_all(alone, &(uint32_t){0}, &t->ids[t->n_prompt + i], 1,
                                  t->wanted + (1 + i) * vocab()),
                         STINT_OK);
}

static void begin(stint_session *s, uint32_t sequence, const struct text *t, float *logits) {
    assert_int_equal(stint_session_truncate(s, sequence, 0), STINT_OK);
    assert_int_equal(st_session_prompt(s, sequence, t->ids, t->n_prompt, t->n_prompt, logits),
                     STINT_OK);
    assert_memory_equal(logits, t->wanted, vocab() * sizeof *logits);
}

// Batches of every size up to all of them, and a sequence that begins anew between two steps.
static void step_together(stint_session *s, const struct text *texts, float *logits) {
    size_t done[N_SEQUENCES] = {0};
    for (uint32_t i = 0; i < N_SEQUENCES; i++) begin(s, i, &texts[i], logits);
    for (size_t step = 0; step < 3 * N_STEPS; step++) {
        uint32_t sequences[N_SEQUENCES];
        int32_t next[N_SEQUENCES];
        size_t n = 0, most = 1 + ts_random_below(N_SEQUENCES), first = ts_random_below(N_SEQUENCES);
        if (step % 8 == 7) {
            begin(s, (uint32_t)first, &texts[first], logits);
            done[first] = 0;
        }
        for (uint32_t j = 0; j < N_SEQUENCES && n < most; j++) {
            uint32_t i = (uint32_t)((first + j) % N_SEQUENCES);
            if (done[i] == N_STEPS) continue;
            sequences[n] = i;
            next[n++] = texts[i].ids[texts[i].n_prompt + done[i]++];
        }
        assert_int_equal(step_all(s, sequences, next, n, logits), STINT_OK);
        for (size_t k = 0; k < n; k++)
            assert_memory_equal(logits + k * vocab(),
                                texts[sequences[k]].wanted + done[sequences[k]] * vocab(),
                                vocab() * sizeof *logits);
    }
}

static void each_sequence_gets_what_it_gets_alone(void **state) {
    (void)state;
    struct text texts[N_SEQUENCES];
    stint_session *alone = open_sequences(1, 0);
    float *logits = malloc(N_SEQUENCES * vocab() * sizeof *logits);
    for (size_t i = 0; i < N_SEQUENCES; i++) make_text(alone, &texts[i]);
    uint64_t least = least_memory(N_SEQUENCES);
    for (uint64_t more = 0; more <= 64; more = more ? 8 * more : 8) {
        stint_session *s = open_sequences(N_SEQUENCES, least + (more << 20));
        step_together(s, texts, logits);
        stint_session_close(s);
    }
    for (size_t i = 0; i < N_SEQUENCES; i++) free(texts[i].wanted);
    free(logits);
    stint_session_close(alone);
}

static int run(const struct variant *v) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bound_gives_the_same),
        cmocka_unit_test(a_bound_must_be_given),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(nested_weights_are_kept),
        cmocka_unit_test(predictors_compute_less),
        cmocka_unit_test(steps_are_finer_than_prompts),
        cmocka_unit_test(each_sequence_gets_what_it_gets_alone),
        cmocka_unit_test(a_file_cut_short_is_an_error),
    };
    variant = v;
    return cmocka_run_group_tests_name(v->title, tests, open_models, close_models);
}

int main(void) {
    int failed = 0;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) failed |= run(&variants[i]);
    return failed;
}
