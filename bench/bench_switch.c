// SPDX-License-Identifier: Apache-2.0
// What it costs to switch the precision between two steps:
//
//     bench_switch PACKAGE [ROUNDS [THREADS [MIB]]]
//
// Steps run at two precisions, in runs of 4 each: high, high, high, high, low, low, ... The time of
// the first step of a run, which follows a switch, is compared with that of the others of the same
// precision. Prints for each pair the medians in ms, their difference, and the time of the call
// that sets the precision. The two kinds of step alternate, so a busy machine slows both. MIB of
// other memory are read before each step: more than the caches hold, and no step finds weights
// there, as on a device whose caches are smaller than the weights.
#include "stint.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PROMPT = 64, RUN = 4, CONTEXT = 512 };

static float *logits; // [vocab]
static unsigned char *other;
static size_t n_other;

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int rising(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, rising);
    return n ? values[n / 2] : 0.0;
}

struct times {
    double *first, *others, *set; // of steps behind a switch, of the other ones, of the call
    size_t n_first, n_others, n_set;
};

static void empty_caches(void) {
    static volatile unsigned sum;
    for (size_t i = 0; i < n_other; i += 64) sum += other[i]++;
}

static bool step(stint_session *s, uint32_t bits, double *set, double *ms) {
    const stint_precision p = {
        .size = sizeof p, .prefill = bits, .n_steps = 1, .steps = {{bits, 0}}};
    const uint32_t sequence = 0;
    const int32_t id = 11;
    empty_caches();
    double begun = now_ms();
    if (stint_session_set_precision(s, &p) != STINT_OK) return false;
    double ready = now_ms();
    if (stint_session_step(s, &sequence, &id, 1, logits) != STINT_OK) return false;
    *set = ready - begun;
    *ms = now_ms() - ready;
    return true;
}

static bool begin(stint_session *s) {
    int32_t ids[PROMPT];
    for (int i = 0; i < PROMPT; i++) ids[i] = 5 + i * 7;
    return stint_session_truncate(s, 0, 0) == STINT_OK &&
           stint_session_eval(s, 0, ids, PROMPT, false, NULL) == STINT_OK;
}

// Rounds of a run at `high` and one at `low`; t[0] is high's, t[1] low's.
static bool measure(stint_session *s, uint32_t high, uint32_t low, size_t rounds,
                    struct times t[2]) {
    if (!begin(s)) return false;
    for (size_t i = 0; i < rounds * 2 * RUN; i++) {
        struct times *to = &t[i / RUN % 2];
        double set, ms;
        if (!step(s, i / RUN % 2 ? low : high, &set, &ms)) return false;
        if (i >= 2 * RUN) {
            if (i % RUN == 0) to->first[to->n_first++] = ms;
            if (i % RUN == 0) to->set[to->n_set++] = set;
            if (i % RUN > 1) to->others[to->n_others++] = ms;
        }
        if ((i + 1) % (8 * RUN) == 0 && stint_session_truncate(s, 0, PROMPT) != STINT_OK)
            return false;
    }
    return true;
}

static bool report(stint_session *s, uint32_t high, uint32_t low, size_t rounds) {
    struct times t[2];
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        t[i] = (struct times){.first = calloc(rounds, sizeof(double)),
                              .others = calloc(rounds * RUN, sizeof(double)),
                              .set = calloc(rounds, sizeof(double))};
        ok = ok && t[i].first && t[i].others && t[i].set;
    }
    ok = ok && measure(s, high, low, rounds, t);
    for (int i = 0; i < 2 && ok; i++) {
        double first = median(t[i].first, t[i].n_first), rest = median(t[i].others, t[i].n_others);
        printf("%u to %u bits: %.3f ms behind a switch, %.3f ms else: %+.3f ms; the call %.5f ms\n",
               i ? high : low, i ? low : high, first, rest, first - rest,
               median(t[i].set, t[i].n_set));
    }
    for (int i = 0; i < 2; i++) {
        free(t[i].first);
        free(t[i].others);
        free(t[i].set);
    }
    return ok;
}

int main(int argc, char **argv) {
    stint_model *model = NULL;
    stint_session *session = NULL;
    stint_model_info info = {.size = sizeof info};
    size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
    stint_session_options o = {.size = sizeof o,
                               .n_context = CONTEXT,
                               .n_threads = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 2};
    bool ok = argc > 1 && rounds > 1 && rounds < 1 << 20 &&
              stint_model_open(argv[1], NULL, &model) == STINT_OK &&
              stint_model_describe(model, &info) == STINT_OK && info.nested_high &&
              stint_session_open(model, &o, &session) == STINT_OK;
    logits = ok ? calloc(info.vocab, sizeof *logits) : NULL;
    n_other = argc > 4 ? (size_t)strtoul(argv[4], NULL, 10) << 20 : 0;
    other = calloc(n_other + 1, 1);
    ok = logits && other;
    for (uint32_t low = info.nested_high; ok && low >= info.nested_low; low--)
        ok = report(session, low == info.nested_high ? 8 : low + 1, low, rounds);
    if (!ok)
        fprintf(stderr, "bench_switch PACKAGE [ROUNDS [THREADS [MIB]]]: %s\n", stint_error_text());
    free(logits);
    free(other);
    stint_session_close(session);
    stint_model_close(model);
    return ok ? 0 : 1;
}
