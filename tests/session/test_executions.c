// SPDX-License-Identifier: Apache-2.0
// Every execution that the public calls reach, against the plain one: in memory, by one thread, on
// one processor, one sequence at a time. Threads, a split, a memory bound, how a prompt is cut
// and what other sequences do change no bit (docs/NUMERICS.md). What cannot be had is refused.
#include "stint.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_PROMPT = 21, N_STEPS = 6, N_IDS = N_PROMPT + N_STEPS, N_SEQUENCES = 3, CONTEXT = 48 };
enum { MAX_DECODE_ROWS = 4 };

// A model and how it is prepared; each is run with its own weights, and at every nested precision.
static const struct kind {
    const char *title, *source;
    bool package;
    uint32_t neuron_bits, bits_low, bits_high;
    double tolerance; // of steps against a prompt: root mean square, in the logits' deviation
} kinds[] = {
    {"float", "fixtures/models/llama2", false, 0, 0, 0, 1e-5},
    {"float, a mixture", "fixtures/models/mixtral", false, 0, 0, 0, 1e-5},
    {"float, ReLU", "fixtures/models/bamboo", false, 0, 0, 0, 1e-5},
    {"int8", "fixtures/models/llama2", true, 0, 2, 4, 0.05},
    // At 3 bits steps round inputs to codes, prompts to BF16: a token may meet another expert.
    {"int8, a mixture", "fixtures/models/mixtral", true, 0, 3, 3, 0.3},
    {"int8, parallel blocks", "fixtures/models/phi2", true, 0, 4, 4, 0.05},
    {"neurons of 8 bits", "fixtures/models/bamboo", true, 8, 0, 0, 0.1},
    {"neurons of 4 bits", "fixtures/models/bamboo", true, 4, 2, 4, 0.1},
    {"plain neurons with biases", "fixtures/models/opt", true, 4, 3, 3, 0.1},
    {"blocks of two types", "fixtures/models/llama-q/q4_k_m.gguf", false, 0, 0, 0, 1e-2},
    {"blocks of one type", "fixtures/models/llama-q/q8_0.gguf", false, 0, 0, 0, 1e-2},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

enum bound { UNBOUND, AMPLE, MIN };

static const struct way {
    const char *title;
    enum bound bound;
    uint32_t n_threads, npu_threads, cpu_threads;
    const char *order;
    uint32_t chunk_len;
    stint_status refused;
    const char *reason;
} ways[] = {
    {"plain", UNBOUND, 1, 0, 0, NULL, 32, STINT_OK, NULL},
    {"two threads", UNBOUND, 2, 0, 0, NULL, 32, STINT_OK, NULL},
    {"short chunks", UNBOUND, 1, 0, 0, NULL, 8, STINT_OK, NULL},
    {"split, in order", UNBOUND, 2, 1, 1, "inorder", 5, STINT_OK, NULL},
    {"split, out of order", UNBOUND, 2, 1, 1, "ooo", 5, STINT_OK, NULL},
    {"split, two threads each", UNBOUND, 2, 2, 2, "heft", 8, STINT_OK, NULL},
    {"ample memory", AMPLE, 2, 0, 0, NULL, 8, STINT_OK, NULL},
    {"least memory", MIN, 1, 0, 0, NULL, 32, STINT_OK, NULL},
    {"least memory, two threads", MIN, 2, 0, 0, NULL, 8, STINT_OK, NULL},
    {"split under a bound", AMPLE, 2, 1, 1, "ooo", 8, STINT_E_UNSUPPORTED,
     "prompts cannot be split"},
};
enum { N_WAYS = sizeof ways / sizeof *ways };

// What one sequence gets of the plain execution.
struct text {
    int32_t ids[N_IDS];
    float *prompt; // [N_PROMPT, vocab]
    float *last;   // [vocab]: of the prompt, asked for alone
    float *steps;  // [N_STEPS, vocab]: one token after the other with stint_session_step()
    float *evals;  // the same with stint_session_eval(), in evals of several lengths
};

struct subject {
    const struct kind *kind;
    stint_model *whole, *lazy;
    size_t vocab;
    const char *schedule;
    struct text texts[N_SEQUENCES];
    const char *way; // for messages
    float *got;      // [N_PROMPT, vocab]
};

static const size_t pieces[] = {5, 9, 7}, evals[] = {1, 4, 1};

// ---- Models and sessions

static stint_model *open_model(const char *path, bool lazy) {
    stint_model_options o = {.size = sizeof o, .no_tokenizer = true, .lazy = lazy};
    stint_model *m = NULL;
    if (stint_model_open(path, &o, &m) != STINT_OK) fail_msg("%s", stint_error_text());
    return m;
}

static void prepare(const struct kind *kind, const char *package) {
    int32_t ids[200];
    stint_prepare_options o = {.size = sizeof o,
                               .ids = ids,
                               .n_ids = 200,
                               .outliers = STINT_OUTLIERS_SHARE,
                               .outlier_prune = 0.5f,
                               .neurons = kind->neuron_bits != 0,
                               .neuron_bits = kind->neuron_bits,
                               .bits_low = kind->bits_low,
                               .bits_high = kind->bits_high};
    for (size_t i = 0; i < 200; i++) ids[i] = (int32_t)ts_random_below(256);
    ts_prepare(ts_shared(kind->source), package, &o);
}

static void open_subject(struct subject *t, const struct kind *kind) {
    char package[600];
    const char *path = ts_shared(kind->source);
    stint_model_info info = {.size = sizeof info};
    snprintf(package, sizeof package, "%s/m.stint", ts_temp_folder());
    if (kind->package) prepare(kind, path = package);
    *t = (struct subject){
        .kind = kind, .whole = open_model(path, false), .lazy = open_model(path, true)};
    assert_int_equal(stint_model_describe(t->whole, &info), STINT_OK);
    t->vocab = info.vocab;
    t->got = malloc(N_PROMPT * t->vocab * sizeof *t->got);
    for (size_t i = 0; i < N_SEQUENCES; i++) {
        struct text *text = &t->texts[i];
        text->prompt = malloc(N_PROMPT * t->vocab * sizeof(float));
        text->last = malloc(t->vocab * sizeof(float));
        text->steps = malloc(N_STEPS * t->vocab * sizeof(float));
        text->evals = malloc(N_STEPS * t->vocab * sizeof(float));
        for (size_t j = 0; j < N_IDS; j++) text->ids[j] = (int32_t)ts_random_below(t->vocab);
    }
}

static void close_subject(struct subject *t) {
    for (size_t i = 0; i < N_SEQUENCES; i++) {
        free(t->texts[i].prompt);
        free(t->texts[i].last);
        free(t->texts[i].steps);
        free(t->texts[i].evals);
    }
    free(t->got);
    stint_model_close(t->whole);
    stint_model_close(t->lazy);
}

static stint_session_options options_of(const struct subject *t, const struct way *way) {
    return (stint_session_options){.size = sizeof(stint_session_options),
                                   .n_threads = way->n_threads,
                                   .n_context = CONTEXT,
                                   .kv = "f32", // steps are close to prompts only in full precision
                                   .chunk_len = way->chunk_len,
                                   .memory = way->bound == UNBOUND ? 0 : (uint64_t)1 << 30,
                                   .npu_threads = way->npu_threads,
                                   .cpu_threads = way->cpu_threads,
                                   .order = way->order,
                                   .schedule = t->schedule,
                                   .leave_out = STINT_LEAVE_PREDICTOR,
                                   .n_sequences = N_SEQUENCES};
}

static const stint_model *model_of(const struct subject *t, const struct way *way) {
    return way->bound == UNBOUND ? t->whole : t->lazy;
}

// What the refusal of less says is enough.
static uint64_t min_bound(const struct subject *t, const struct way *way) {
    stint_session_options o = options_of(t, way);
    stint_session *s = NULL;
    unsigned long long mib = 0;
    o.memory = 1;
    assert_int_equal(stint_session_open(t->lazy, &o, &s), STINT_E_LIMIT);
    const char *number = strpbrk(stint_error_text(), "0123456789");
    assert_non_null(number);
    assert_int_equal(sscanf(number, "%llu MiB", &mib), 1);
    return mib << 20;
}

static stint_session *open_session(const struct subject *t, const struct way *way) {
    stint_session_options o = options_of(t, way);
    stint_session *s = NULL;
    if (way->bound == MIN) o.memory = min_bound(t, way);
    if (stint_session_open(model_of(t, way), &o, &s) != STINT_OK)
        fail_msg("%s, %s: %s", t->kind->title, way->title, stint_error_text());
    return s;
}

// ---- The same tokens in every manner

static void done(const struct subject *t, stint_status status) {
    if (status != STINT_OK) fail_msg("%s, %s: %s", t->kind->title, t->way, stint_error_text());
}

static void same(const struct subject *t, const float *got, const float *wanted, size_t n,
                 const char *manner) {
    if (memcmp(got, wanted, n * t->vocab * sizeof *got) != 0)
        fail_msg("%s, schedule %s, %s: %s differs from the plain execution", t->kind->title,
                 t->schedule ? t->schedule : "none", t->way, manner);
}

// Root of the mean square of the difference, in standard deviations of the wanted ones.
static double difference(const float *got, const float *wanted, size_t n) {
    double sum = 0.0, squares = 0.0, error = 0.0;
    for (size_t i = 0; i < n; i++) {
        double miss = (double)got[i] - (double)wanted[i];
        sum += (double)wanted[i];
        squares += (double)wanted[i] * (double)wanted[i];
        error += miss * miss;
    }
    return sqrt(error / (squares - sum * sum / (double)n));
}

// Of a piece of a prompt. In float the head does its sums in another order where it meets up to
// four rows at a time, as it does at the end of a piece that is not a whole number of chunks.
static void same_piece(const struct subject *t, uint32_t chunk_len, const float *wanted, size_t n,
                       const char *manner) {
    size_t rest = n % chunk_len, rounded = !t->kind->package && rest <= MAX_DECODE_ROWS ? rest : 0;
    const float *got = t->got + (n - rounded) * t->vocab;
    same(t, t->got, wanted, n - rounded, manner);
    wanted += (n - rounded) * t->vocab;
    if (rounded && difference(got, wanted, rounded * t->vocab) > t->kind->tolerance)
        fail_msg("%s, %s: %s: its last rows differ", t->kind->title, t->way, manner);
}

static void eval_evals(const struct subject *t, stint_session *s, uint32_t sequence,
                       const int32_t *ids, float *logits) {
    for (size_t i = 0, at = 0; at < N_STEPS; at += evals[i++])
        done(t, stint_session_eval(s, sequence, ids + at, evals[i], true, logits + at * t->vocab));
}

static void make_texts(struct subject *t) {
    stint_session *s = open_session(t, &ways[0]);
    t->way = ways[0].title;
    for (size_t i = 0; i < N_SEQUENCES; i++) {
        struct text *text = &t->texts[i];
        const int32_t *rest = text->ids + N_PROMPT;
        done(t, stint_session_truncate(s, 0, 0));
        done(t, stint_session_eval(s, 0, text->ids, N_PROMPT, true, text->prompt));
        for (size_t j = 0; j < N_STEPS; j++)
            done(t, stint_session_step(s, &(uint32_t){0}, rest + j, 1, text->steps + j * t->vocab));
        done(t, stint_session_truncate(s, 0, N_PROMPT));
        eval_evals(t, s, 0, rest, text->evals);
        done(t, stint_session_truncate(s, 0, 0));
        done(t, stint_session_eval(s, 0, text->ids, N_PROMPT, false, text->last));
    }
    stint_session_close(s);
}

static void check_prompts(const struct subject *t, stint_session *s, uint32_t chunk_len) {
    for (uint32_t q = 0; q < N_SEQUENCES; q++) {
        const struct text *text = &t->texts[q];
        done(t, stint_session_eval(s, q, text->ids, N_PROMPT, true, t->got));
        same_piece(t, chunk_len, text->prompt, N_PROMPT, "a whole prompt");
        done(t, stint_session_truncate(s, q, 0));
        for (size_t i = 0, at = 0; at < N_PROMPT; at += pieces[i++]) {
            done(t, stint_session_eval(s, q, text->ids + at, pieces[i], true, t->got));
            same_piece(t, chunk_len, text->prompt + at * t->vocab, pieces[i], "a prompt in pieces");
        }
        done(t, stint_session_truncate(s, q, 0));
        done(t, stint_session_eval(s, q, text->ids, N_PROMPT, false, t->got));
        same(t, t->got, text->last, 1, "a prompt's last token");
    }
}

// All sequences hold their prompts; each takes part in some batches.
static void check_steps(const struct subject *t, stint_session *s) {
    size_t at[N_SEQUENCES] = {0};
    for (size_t round = 0; round < 2 * N_STEPS; round++) {
        uint32_t sequences[N_SEQUENCES];
        int32_t ids[N_SEQUENCES];
        size_t n = 0;
        for (uint32_t j = 0; j < N_SEQUENCES; j++) {
            uint32_t q = (uint32_t)((round + j) % N_SEQUENCES);
            if (at[q] == N_STEPS || (round + q) % 4 == 0) continue;
            sequences[n] = q;
            ids[n++] = t->texts[q].ids[N_PROMPT + at[q]];
        }
        done(t, stint_session_step(s, sequences, ids, n, t->got));
        for (size_t i = 0; i < n; i++)
            same(t, t->got + i * t->vocab,
                 t->texts[sequences[i]].steps + at[sequences[i]]++ * t->vocab, 1,
                 "a step of several sequences");
    }
    for (uint32_t q = 0; q < N_SEQUENCES; q++) assert_int_equal(at[q], N_STEPS);
}

static void check_evals(const struct subject *t, stint_session *s) {
    for (uint32_t q = 0; q < N_SEQUENCES; q++) {
        done(t, stint_session_truncate(s, q, N_PROMPT));
        eval_evals(t, s, q, t->texts[q].ids + N_PROMPT, t->got);
        same(t, t->got, t->texts[q].evals, N_STEPS, "tokens one to four at a time");
    }
}

static void check_refused(const struct subject *t, const struct way *way) {
    stint_session_options o = options_of(t, way);
    stint_session *s = NULL;
    assert_int_equal(stint_session_open(model_of(t, way), &o, &s), way->refused);
    assert_null(s);
    if (!strstr(stint_error_text(), way->reason))
        fail_msg("'%s' lacks '%s'", stint_error_text(), way->reason);
}

static void check_way(struct subject *t, const struct way *way) {
    if (way->refused != STINT_OK && !t->kind->neuron_bits) { // which such threads share
        check_refused(t, way);
        return;
    }
    stint_session *s = open_session(t, way);
    t->way = way->title;
    check_prompts(t, s, way->chunk_len);
    check_steps(t, s);
    check_evals(t, s);
    stint_session_close(s);
}

// Steps do the sums of a prompt in another order, and those of neurons have finer inputs.
static void check_steps_against_prompt(struct subject *t) {
    const struct text *text = &t->texts[0];
    size_t n = N_STEPS * t->vocab;
    float *all = malloc(N_IDS * t->vocab * sizeof *all), *rest = all + N_PROMPT * t->vocab;
    stint_session *s = open_session(t, &ways[0]);
    done(t, stint_session_eval(s, 0, text->ids, N_IDS, true, all));
    double of_steps = difference(text->steps, rest, n), of_evals = difference(text->evals, rest, n);
    if (!(of_steps <= t->kind->tolerance) || !(of_evals <= t->kind->tolerance))
        fail_msg("%s, schedule %s: steps are %g and %g from a prompt", t->kind->title,
                 t->schedule ? t->schedule : "none", of_steps, of_evals);
    stint_session_close(s);
    free(all);
}

static void check_precision(struct subject *t, uint32_t bits) {
    char schedule[32];
    snprintf(schedule, sizeof schedule, "uniform:%u", bits);
    t->schedule = bits ? schedule : NULL;
    make_texts(t);
    check_steps_against_prompt(t);
    for (size_t i = 0; i < N_WAYS; i++) check_way(t, &ways[i]);
    t->schedule = NULL;
}

static void every_execution_gives_the_plain_one(void **state) {
    struct subject t;
    open_subject(&t, *state);
    check_precision(&t, 0);
    for (uint32_t bits = t.kind->bits_low; bits && bits <= t.kind->bits_high; bits++)
        check_precision(&t, bits);
    close_subject(&t);
}

// ---- What there is not

static void what_there_is_not_is_refused(void **state) {
    (void)state;
    static const struct {
        size_t kind;
        const char *schedule;
        uint64_t memory;
        stint_status status;
        const char *reason;
    } rows[] = {
        {0, "uniform:4", 0, STINT_E_UNSUPPORTED, "no nested weights"},
        {0, NULL, 1, STINT_E_LIMIT, "are allowed"},
        {3, "uniform:5", 0, STINT_E_ARG, "2 to 4"},
        {3, "uniform:5", (uint64_t)1 << 30, STINT_E_ARG, "2 to 4"},
        {3, NULL, 1, STINT_E_LIMIT, "are allowed"},
        {6, "uniform:4", 0, STINT_E_UNSUPPORTED, "no nested weights"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct subject t;
        stint_session *s = NULL;
        open_subject(&t, &kinds[rows[i].kind]);
        t.schedule = rows[i].schedule;
        stint_session_options o = options_of(&t, &ways[0]);
        o.memory = rows[i].memory;
        assert_int_equal(stint_session_open(rows[i].memory ? t.lazy : t.whole, &o, &s),
                         rows[i].status);
        if (!strstr(stint_error_text(), rows[i].reason))
            fail_msg("row %zu: '%s' lacks '%s'", i, stint_error_text(), rows[i].reason);
        close_subject(&t);
    }
}

int main(void) {
    struct CMUnitTest tests[N_KINDS + 1] = {cmocka_unit_test(what_there_is_not_is_refused)};
    for (size_t i = 0; i < N_KINDS; i++)
        tests[1 + i] = (struct CMUnitTest){.name = kinds[i].title,
                                           .test_func = every_execution_gives_the_plain_one,
                                           .initial_state = (void *)(uintptr_t)&kinds[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
