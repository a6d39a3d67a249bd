// SPDX-License-Identifier: Apache-2.0
#include "support/bounded.h"

#include "format/package.h"
#include "support/kinds.h"

#include <fcntl.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct ts_bounded ts_bounded;

static stint_model *open_package(bool lazy) {
    stint_model_options o = {.size = sizeof o, .lazy = lazy};
    stint_model *m = NULL;
    assert_int_equal(stint_model_open(ts_bounded.package, &o, &m), STINT_OK);
    return m;
}

size_t ts_bounded_vocab(void) {
    return ts_bounded.whole->config.vocab;
}

bool ts_bounded_is_nested(void) {
    return ts_bounded.variant->step_bits || ts_bounded.variant->one_set;
}

const char *ts_bounded_schedule(void) {
    return ts_bounded.variant->step_bits ? ts_bounded.schedule : NULL;
}

static void write_schedule(void) {
    stint_precision p = {.size = sizeof p, .prefill = 8, .n_steps = 1};
    p.steps[0].bits = ts_bounded.variant->step_bits;
    snprintf(ts_bounded.schedule, sizeof ts_bounded.schedule, "%s/schedule.json", ts_temp_folder());
    if (ts_bounded.variant->step_bits)
        assert_int_equal(st_schedule_write(ts_bounded.whole, &p, ts_bounded.schedule), STINT_OK);
}

stint_session_options ts_bounded_options(uint64_t memory) {
    return (stint_session_options){.size = sizeof(stint_session_options),
                                   .n_threads = 2,
                                   .n_context = TS_BOUNDED_CONTEXT,
                                   .chunk_len = TS_BOUNDED_CHUNK,
                                   .memory = memory,
                                   .schedule = ts_bounded_schedule()};
}

stint_status ts_bounded_try(const stint_model *model, uint64_t memory, bool predict,
                            stint_session **session) {
    stint_session_options o = ts_bounded_options(memory);
    o.leave_out = predict ? 0 : STINT_LEAVE_PREDICTOR;
    return stint_session_open(model, &o, session);
}

stint_session *ts_bounded_session(const stint_model *model, uint64_t memory, bool predict) {
    stint_session *s = NULL;
    if (ts_bounded_try(model, memory, predict, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

stint_status ts_bounded_eval(stint_session *s, float *logits) {
    static const size_t steps[] = {TS_BOUNDED_PROMPT, 4, 3, 2, 1};
    size_t done = 0;
    ST_TRY(stint_session_truncate(s, 0, 0));
    for (size_t i = 0; done < TS_BOUNDED_IDS; done += steps[i++]) {
        struct st_eval_request e = st_eval_request_of(s, 0, ts_bounded.ids + done, steps[i]);
        if (i) e.precision = s->precision.steps[0].bits;
        e.all = true;
        e.logits = logits + done * ts_bounded_vocab();
        ST_TRY(st_session_eval(s, &e));
    }
    return STINT_OK;
}

const char *ts_bounded_source(void) {
    char few[64]; // tests/CMakeLists.txt builds these for emulators
    const char *model = ts_bounded.variant->model, *layers = strstr(model, "-10m");
    if (ts_is_emulated() && layers) {
        snprintf(few, sizeof few, "%.*s-4%s", (int)(layers - model), model, layers + 4);
        model = few;
    }
    const char *built = ts_built(model);
    return access(built, R_OK) == 0 ? built : ts_shared(model);
}

static void prepare(void) {
    const char *source = ts_bounded_source();
    snprintf(ts_bounded.package, sizeof ts_bounded.package, "%s/m.stint", ts_temp_folder());
    bool nested = ts_bounded_is_nested();
    stint_prepare_options o = {.size = sizeof o,
                               .n_tokens = ts_bounded.variant->n_tokens,
                               .outliers = STINT_OUTLIERS_SHARE,
                               .outlier_prune = 0.5f,
                               .neurons = ts_bounded.variant->neuron_bits != 0,
                               .neuron_bits = ts_bounded.variant->neuron_bits,
                               .one_set = ts_bounded.variant->one_set,
                               .bits_low = nested ? 2 : 0,
                               .bits_high = nested ? 4 : 0};
    ts_prepare(source, ts_bounded.package, &o);
}

static int open_models(void **state) {
    (void)state;
    if (ts_bounded.variant->n_tokens)
        prepare();
    else
        snprintf(ts_bounded.package, sizeof ts_bounded.package, "%s", ts_bounded_source());
    ts_bounded.whole = open_package(false);
    ts_bounded.lazy = open_package(true);
    write_schedule();
    for (size_t i = 0; i < TS_BOUNDED_IDS; i++)
        ts_bounded.ids[i] = (int32_t)ts_random_below(ts_bounded_vocab());
    ts_bounded.wanted = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *ts_bounded.wanted);
    stint_session *s = ts_bounded_session(ts_bounded.whole, 0, false);
    assert_int_equal(ts_bounded_eval(s, ts_bounded.wanted), STINT_OK);
    stint_session_close(s);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    stint_model_close(ts_bounded.whole);
    stint_model_close(ts_bounded.lazy);
    free(ts_bounded.wanted);
    return 0;
}

size_t ts_bounded_logits_bytes(void) {
    return TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof(float);
}

void ts_bounded_assert_same(stint_session *s, const float *wanted, const char *what) {
    float *got = calloc(1, ts_bounded_logits_bytes());
    if (ts_bounded_eval(s, got) != STINT_OK) fail_msg("%s: %s", what, stint_error_text());
    if (memcmp(got, wanted, ts_bounded_logits_bytes()) != 0) fail_msg("%s: other bits", what);
    free(got);
}

void ts_bounded_make_hot(void) {
    enum { MAX_NEURONS = 4096 };
    static float rates[ST_NEURON_RATES * MAX_NEURONS];
    const struct stint_model *m = ts_bounded.lazy;
    size_t n = m->neurons.layout.n;
    assert_true(n <= MAX_NEURONS);
    for (size_t b = 0; b < ST_NEURON_RATES; b++)
        for (size_t i = 0; i < n; i++) rates[b * n + i] = i * 8 < n * (b + 1) ? 0.9f : 0.1f;
    for (uint32_t i = 0; i < m->config.n_layers; i++) m->neurons.layers[i].rates = rates;
}

// The mean of many steps: what is read ahead may arrive in the step before its own or in its own.
uint64_t ts_bounded_step_bytes(stint_session *s, unsigned precision, uint32_t sequence) {
    enum { BEFORE = 4, STEPS = TS_BOUNDED_STEPS - BEFORE };
    stint_memory_info begun = {.size = sizeof begun}, done = begun;
    float *logits = malloc(ts_bounded_vocab() * sizeof *logits);
    for (int i = 0; i < BEFORE + STEPS; i++) {
        if (i == BEFORE) assert_int_equal(stint_session_memory(s, &begun), STINT_OK);
        assert_int_equal(st_session_step(s, precision, &sequence, &(int32_t){7}, 1, logits),
                         STINT_OK);
    }
    assert_int_equal(stint_session_memory(s, &done), STINT_OK);
    free(logits);
    return (done.bytes_read - begun.bytes_read) / STEPS;
}

uint64_t ts_bounded_min(uint32_t n_sequences) {
    stint_session_options o = ts_bounded_options(1);
    o.n_sequences = n_sequences;
    stint_session *s = NULL;
    unsigned long long min = 0;
    assert_int_equal(stint_session_open(ts_bounded.lazy, &o, &s), STINT_E_LIMIT);
    assert_int_equal(sscanf(stint_error_text(), "memory: at least %llu MiB", &min), 1);
    o.memory = (min - 2) << 20; // the bound that is named has half a MiB to spare
    assert_int_equal(stint_session_open(ts_bounded.lazy, &o, &s), STINT_E_LIMIT);
    return min << 20;
}

int ts_bounded_open(struct stat *before) {
    int file = open(ts_bounded.package, O_RDWR);
    assert_int_equal(fstat(file, before), 0);
    return file;
}

void ts_bounded_close(int file, const struct stat *before) {
    assert_int_equal(futimens(file, (struct timespec[]){before->st_atim, before->st_mtim}), 0);
    assert_int_equal(fsync(file), 0);
    close(file);
}

void ts_bounded_flip(const char *section, size_t offset) {
    const struct st_section *s = st_package_find(ts_bounded.lazy->checkpoint.package, section);
    assert_non_null(s);
    off_t at = (const unsigned char *)s->data - ts_bounded.lazy->checkpoint.maps->data;
    struct stat before;
    int file = ts_bounded_open(&before);
    unsigned char byte;
    at += (off_t)offset;
    assert_int_equal(pread(file, &byte, 1, at), 1);
    byte ^= 16;
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    ts_bounded_close(file, &before);
}

int ts_bounded_run(const struct ts_bounded_variant *variant, bool laws,
                   const struct CMUnitTest *tests, size_t n) {
    enum { N_LAWS = 5, MAX_OWN = 12 };
    struct CMUnitTest all[N_LAWS + MAX_OWN] = {
        cmocka_unit_test(ts_bounded_any_bound_gives_the_same),
        cmocka_unit_test(ts_bounded_a_bound_must_be_given),
        cmocka_unit_test(ts_bounded_damage_is_found),
        cmocka_unit_test(ts_bounded_each_sequence_gets_what_it_gets_alone),
        cmocka_unit_test(ts_bounded_a_file_cut_short_is_an_error),
    };
    size_t first = laws ? N_LAWS : 0;
    if (n > MAX_OWN) return 1;
    if (n) memcpy(all + first, tests, n * sizeof *tests);
    ts_bounded.variant = variant;
    return _cmocka_run_group_tests(variant->title, all, first + n, open_models, close_models);
}
