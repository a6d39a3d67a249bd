// SPDX-License-Identifier: Apache-2.0
// Several sequences under a memory bound: each gets what it gets by itself without one.
#include "support/bounded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

// More than one batch of the longest that this chunk allows, which is more than a group of tokens
// whose neurons run together.
enum { N_SEQUENCES = TS_BOUNDED_CHUNK + 2, N_STEPS = 8 };

// A step of one sequence or several, as the schedule says.
static stint_status step_all(stint_session *s, const uint32_t *sequences, const int32_t *next,
                             size_t n, float *logits) {
    return st_session_step(s, s->precision.steps[0].bits, sequences, next, n, logits);
}

static stint_session *open_sequences(uint32_t n, uint64_t memory) {
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = TS_BOUNDED_CONTEXT,
                               .chunk_len = TS_BOUNDED_CHUNK,
                               .memory = memory,
                               .schedule = ts_bounded_schedule(),
                               .leave_out = STINT_LEAVE_PREDICTOR,
                               .n_sequences = n};
    stint_session *s = NULL;
    if (stint_session_open(memory ? ts_bounded.lazy : ts_bounded.whole, &o, &s) != STINT_OK)
        fail_msg("%s", stint_error_text());
    return s;
}

struct text {
    int32_t ids[TS_BOUNDED_CONTEXT];
    size_t n_prompt;
    float *wanted; // [1 + N_STEPS, vocab] after the prompt, and after each step
};

// By itself, in a session without a bound.
static void make_text(stint_session *alone, struct text *t) {
    t->n_prompt = 1 + ts_random_below(3 * TS_BOUNDED_CHUNK);
    t->wanted = malloc((1 + N_STEPS) * ts_bounded_vocab() * sizeof *t->wanted);
    for (size_t i = 0; i < TS_BOUNDED_CONTEXT; i++)
        t->ids[i] = (int32_t)ts_random_below(ts_bounded_vocab());
    assert_int_equal(stint_session_truncate(alone, 0, 0), STINT_OK);
    assert_int_equal(st_session_prompt(alone, 0, t->ids, t->n_prompt, t->n_prompt, t->wanted),
                     STINT_OK);
    for (size_t i = 0; i < N_STEPS; i++)
        assert_int_equal(step_all(alone, &(uint32_t){0}, &t->ids[t->n_prompt + i], 1,
                                  t->wanted + (1 + i) * ts_bounded_vocab()),
                         STINT_OK);
}

static void begin(stint_session *s, uint32_t sequence, const struct text *t, float *logits) {
    assert_int_equal(stint_session_truncate(s, sequence, 0), STINT_OK);
    assert_int_equal(st_session_prompt(s, sequence, t->ids, t->n_prompt, t->n_prompt, logits),
                     STINT_OK);
    assert_memory_equal(logits, t->wanted, ts_bounded_vocab() * sizeof *logits);
}

// Batches of every size up to all of them, and a sequence that begins anew between two steps.
static void step_together(stint_session *s, const struct text *texts, float *logits) {
    size_t done[N_SEQUENCES] = {0};
    for (uint32_t i = 0; i < N_SEQUENCES; i++) begin(s, i, &texts[i], logits);
    for (size_t step = 0; step < 3 * N_STEPS; step++) {
        uint32_t sequences[N_SEQUENCES];
        int32_t next[N_SEQUENCES];
        size_t n = 0, max = 1 + ts_random_below(N_SEQUENCES), first = ts_random_below(N_SEQUENCES);
        if (step % 8 == 7) {
            begin(s, (uint32_t)first, &texts[first], logits);
            done[first] = 0;
        }
        for (uint32_t j = 0; j < N_SEQUENCES && n < max; j++) {
            uint32_t i = (uint32_t)((first + j) % N_SEQUENCES);
            if (done[i] == N_STEPS) continue;
            sequences[n] = i;
            next[n++] = texts[i].ids[texts[i].n_prompt + done[i]++];
        }
        assert_int_equal(step_all(s, sequences, next, n, logits), STINT_OK);
        for (size_t k = 0; k < n; k++)
            assert_memory_equal(logits + k * ts_bounded_vocab(),
                                texts[sequences[k]].wanted +
                                    done[sequences[k]] * ts_bounded_vocab(),
                                ts_bounded_vocab() * sizeof *logits);
    }
}

void ts_bounded_each_sequence_gets_what_it_gets_alone(void **state) {
    (void)state;
    struct text texts[N_SEQUENCES];
    stint_session *alone = open_sequences(1, 0);
    float *logits = malloc(N_SEQUENCES * ts_bounded_vocab() * sizeof *logits);
    for (size_t i = 0; i < N_SEQUENCES; i++) make_text(alone, &texts[i]);
    uint64_t min = ts_bounded_min(N_SEQUENCES);
    for (uint64_t more = 0; more <= 64; more = more ? 8 * more : 8) {
        stint_session *s = open_sequences(N_SEQUENCES, min + (more << 20));
        step_together(s, texts, logits);
        stint_session_close(s);
    }
    for (size_t i = 0; i < N_SEQUENCES; i++) free(texts[i].wanted);
    free(logits);
    stint_session_close(alone);
}
