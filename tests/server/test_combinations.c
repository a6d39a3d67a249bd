// SPDX-License-Identifier: Apache-2.0
// The table of combinations: every kind of precision schedule, with every kind of draft, alone and
// in a batch, in memory and under a bound, gives the text of the same schedule by itself.
#include "server/scheduler/slots.h"
#include "session/precision/learned.h"
#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_TEXTS = 4, N_PROMPT = 48, N_TOKENS = 28, N_CONTEXT = 96, ROOM_MIB = 1 };

static stint_model *whole, *lazy; // one package
static int32_t prompts[N_TEXTS][N_PROMPT];
static char by_steps[600], all_nested[600], by_entropy[600], by_margin[600], learned[600];

// Two schedules that weights drawn at random select between, so that prompts differ.
static void write_learned(void) {
    const stint_precision choices[] = {
        {.size = sizeof *choices, .prefill = 8, .n_steps = 1, .steps = {{2, 0}}},
        {.size = sizeof *choices, .prefill = 8, .n_steps = 2, .steps = {{4, 0}, {2, 9}}}};
    struct st_heads heads = st_learned_heads(&whole->config);
    struct st_pooling_net net = {.n_heads = heads.n_kv,
                                 .head_dim = heads.dim,
                                 .n_hidden = ST_LEARNED_HIDDEN,
                                 .n_choices = 2};
    size_t n = st_pooling_net_size(&net);
    float *weights = calloc(n, sizeof *weights);
    assert_non_null(weights);
    st_pooling_net_place(&net, weights);
    for (size_t i = 0; i < n; i++) weights[i] = ts_random_float(-1.0f, 1.0f);
    snprintf(learned, sizeof learned, "%s/learned.stint", ts_temp_folder());
    assert_int_equal(st_learned_write(whole, &net, choices, learned), STINT_OK);
    free(weights);
}

static void write_static(const char *name, const stint_precision *precision, char path[600]) {
    snprintf(path, 600, "%s/%s", ts_temp_folder(), name);
    assert_int_equal(st_schedule_write(whole, precision, path), STINT_OK);
}

static int open_models(void **state) {
    (void)state;
    char path[600];
    stint_prepare_options o = {.size = sizeof o, .n_tokens = 200, .bits_low = 2, .bits_high = 4};
    stint_model_options on_demand = {.size = sizeof on_demand, .lazy = true};
    whole = ts_package(ts_built("models/novels-2"), "combined", &o);
    snprintf(path, sizeof path, "%s/combined.stint", ts_temp_folder());
    assert_int_equal(stint_model_open(path, &on_demand, &lazy), STINT_OK);
    write_static("steps.json",
                 &(stint_precision){.prefill = 8, .n_steps = 3, .steps = {{8, 0}, {4, 6}, {2, 15}}},
                 by_steps);
    write_static("nested.json",
                 &(stint_precision){.prefill = 4, .n_steps = 2, .steps = {{4, 0}, {3, 10}}},
                 all_nested);
    stint_precision signal = {.prefill = 8,
                              .n_steps = 3,
                              .steps = {{4, 0}, {3, 0}, {2, 0}},
                              .signal = STINT_SIGNAL_ENTROPY,
                              .thresholds = {4.0f, 2.0f}};
    write_static("entropy.json", &signal, by_entropy);
    signal.signal = STINT_SIGNAL_MARGIN;
    signal.thresholds[0] = 0.7f;
    signal.thresholds[1] = 0.3f;
    write_static("margin.json", &signal, by_margin);
    write_learned();
    for (int i = 0; i < N_TEXTS; i++) // each repeats itself, so that n-grams draft
        for (int k = 0; k < N_PROMPT; k++)
            prompts[i][k] =
                k < 9 + i ? (int32_t)(3 + ts_random_below(4000)) : prompts[i][k - 9 - i];
    return 0;
}

static int close_models(void **state) {
    (void)state;
    stint_model_close(whole);
    stint_model_close(lazy);
    return 0;
}

// ---- Answers

struct answer {
    int32_t ids[N_TOKENS];
    size_t n;
    struct st_scheduler_usage usage;
};

struct combination {
    const char *schedule;
    uint32_t n_drafts, draft_bits, n_texts;
    uint64_t memory;
};

static void note_token(void *context, const struct st_scheduler_event *event) {
    struct answer *a = context;
    if (event->token) a->ids[a->n++] = event->token->id;
    if (event->end != ST_SCHEDULER_GOES_ON) a->usage = *event->usage;
}

static void end_job(struct st_slots *slots, uint32_t slot, enum st_scheduler_end end) {
    if (end == ST_SCHEDULER_FAILED) fail_msg("%s", stint_error_text());
    st_slots_end(slots, slot, STINT_OK);
    st_job_end(slots->slots[slot].job, end, STINT_OK, NULL);
    st_job_free(slots->slots[slot].job);
    slots->slots[slot].state = ST_SLOT_FREE;
}

static stint_session_options session_of(const struct combination *c) {
    return (stint_session_options){.size = sizeof(stint_session_options),
                                   .n_threads = 2,
                                   .n_context = N_CONTEXT,
                                   .n_sequences = c->n_texts,
                                   .schedule = c->schedule,
                                   .n_drafts = c->n_drafts,
                                   .draft_bits = c->draft_bits,
                                   .memory = c->memory};
}

static void begin(struct st_slots *slots, const stint_model *model, uint32_t slot, size_t text,
                  struct answer *a) {
    struct st_scheduler_request r = {
        .prompt = prompts[text], .n_prompt = N_PROMPT, .options.max_tokens = N_TOKENS};
    struct st_job *job = NULL;
    enum st_scheduler_end end;
    r.options.model = model;
    r.options.ignore_eos = true;
    assert_int_equal(st_job_open(&r, model, &job), STINT_OK);
    job->fn = note_token;
    job->context = a;
    st_slots_give(slots, &(struct st_slot_choice){slot, slot, 0}, job);
    if (st_slots_prompt(slots, slot, &end) != STINT_OK) fail_msg("%s", stint_error_text());
    assert_int_equal(end, ST_SCHEDULER_GOES_ON);
}

// Texts [first, first + c->n_texts), side by side; drafts are computed whatever they cost.
static void answer(const struct combination *c, size_t first, struct answer *answers) {
    struct st_slots slots;
    const stint_model *model = c->memory ? lazy : whole;
    stint_session_options o = session_of(c);
    if (st_slots_open(model, &o, &slots) != STINT_OK)
        fail_msg("%s: %s", c->schedule, stint_error_text());
    slots.session->drafting.costs.always = true;
    for (uint32_t i = 0; i < c->n_texts; i++) {
        memset(&answers[i], 0, sizeof answers[i]);
        begin(&slots, model, i, first + i, &answers[i]);
    }
    while (st_slots_count(&slots, ST_SLOT_ANSWER) > 0) {
        struct st_slot_end ends[N_TEXTS];
        uint64_t steps = 0;
        uint32_t n = st_slots_step(&slots, ends, &steps);
        for (uint32_t i = 0; i < n; i++) end_job(&slots, ends[i].slot, ends[i].end);
    }
    st_slots_close(&slots);
}

// The least bound that works, as the refusal of a lower one says, and a little room.
static uint64_t bound_of(const struct combination *c) {
    unsigned mib = 0;
    struct combination tight = *c;
    stint_session *s = NULL;
    tight.memory = 1;
    stint_session_options o = session_of(&tight);
    assert_int_not_equal(stint_session_open(lazy, &o, &s), STINT_OK);
    assert_int_equal(sscanf(stint_error_text(), "memory: at least %u MiB", &mib), 1);
    return (uint64_t)(mib + ROOM_MIB) << 20;
}

// ---- The table

struct drafts {
    const char *name;
    uint32_t n, bits;
};

static const struct drafts kinds[] = {
    {"no drafts", 0, 0}, {"n-grams", 7, 0}, {"n-grams and 2 bits", 7, 2}};

struct counts {
    size_t drafted, accepted, self;
};

// One schedule's rows; `alone` has each text by itself, without drafts or a bound.
static void run_rows(const char *schedule, const struct answer *alone, struct counts counts[3]) {
    for (size_t row = 0; row < 12; row++) {
        const struct drafts *d = &kinds[row % 3];
        bool batch = row / 3 % 2, bounded = row / 6;
        struct combination c = {schedule, d->n, d->bits, batch ? N_TEXTS : 1, 0};
        struct answer got[N_TEXTS];
        if (bounded) c.memory = bound_of(&c);
        answer(&c, 0, got);
        for (uint32_t i = 0; i < c.n_texts; i++) {
            if (got[i].n != N_TOKENS || memcmp(got[i].ids, alone[i].ids, sizeof got[i].ids) != 0)
                fail_msg("schedule %s, %s, %u texts, memory %u: text %u is another one", schedule,
                         d->name, c.n_texts, (unsigned)c.memory, i);
            counts[row % 3].drafted += got[i].usage.drafted_tokens;
            counts[row % 3].accepted += got[i].usage.accepted_tokens;
            counts[row % 3].self += got[i].usage.self_drafted_tokens;
        }
    }
}

static void every_combination_gives_the_plain_text(void **state) {
    (void)state;
    const char *const schedules[] = {"none",  "uniform:3", by_steps, all_nested,
                                     learned, by_entropy,  by_margin};
    size_t differ = 0, self = 0, accepted = 0;
    struct answer int8[N_TEXTS];
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        struct answer alone[N_TEXTS];
        struct counts counts[3] = {{0, 0, 0}};
        bool signal = schedules[i] == by_entropy || schedules[i] == by_margin;
        for (size_t k = 0; k < N_TEXTS; k++)
            answer(&(struct combination){schedules[i], 0, 0, 1, 0}, k, &alone[k]);
        run_rows(schedules[i], alone, counts);
        assert_int_equal(counts[0].drafted, 0);
        assert_int_equal(counts[1].self, 0);
        // What the tokens behind the next one will need is not known where a signal selects.
        for (size_t k = 1; k < 3; k++) assert_true(signal == (counts[k].drafted == 0));
        self += counts[2].self; // none where the learned schedule selects 2 bits for all texts
        accepted += counts[2].accepted;
        if (i == 0) memcpy(int8, alone, sizeof int8);
        for (size_t k = 0; k < N_TEXTS; k++)
            differ += memcmp(int8[k].ids, alone[k].ids, sizeof int8[k].ids) != 0;
    }
    assert_true(self > 0 && accepted > 0);
    assert_true(differ > N_TEXTS); // the schedules are not all alike
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_combination_gives_the_plain_text)};
    return cmocka_run_group_tests(tests, open_models, close_models);
}
