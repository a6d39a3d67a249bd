// SPDX-License-Identifier: Apache-2.0
// Laws of real tokenizers: byte-level ones without a normalizer lose nothing of any text, the room
// that ids or text need is told, threads do not disturb each other, and long words end.
#include "stint.h"
#include "support/support.h"

#include <pthread.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX = 4096, N_THREADS = 4 };

static stint_tokenizer *open_shared(const char *relative) {
    stint_tokenizer *t = NULL;
    const char *path = ts_shared(relative);
    if (stint_tokenizer_open(path, &t) != STINT_OK) fail_msg("%s", stint_error_text());
    return t;
}

static size_t put_character(char *out, uint32_t c) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | c);
    return n;
}

// Up to 60 characters: letters, white space, and anything else.
static size_t random_text(char *out) {
    static const uint32_t spaces[] = {' ', ' ', '\n', '\t', '\r', 0xa0, 0x3000, 0x2028};
    size_t n = 0, n_characters = ts_random_below(60);
    for (size_t i = 0; i < n_characters; i++) {
        size_t kind = ts_random_below(8);
        uint32_t c = (uint32_t)('a' + ts_random_below(26));
        if (kind == 0) c = spaces[ts_random_below(8)];
        if (kind == 1) c = (uint32_t)(0x20 + ts_random_below(0x2e0));
        if (kind == 2) c = (uint32_t)(0x300 + ts_random_below(0xd500));
        if (kind == 3) c = (uint32_t)(0xe000 + ts_random_below(0x102000));
        n += put_character(out + n, c);
    }
    return n;
}

// Both vocabularies have all 256 bytes.
static void byte_level_tokens_lose_nothing(void **state) {
    (void)state;
    static const char *const files[] = {"fixtures/tokenizers/novels/tokenizer.json",
                                        "fixtures/tokenizers/gguf-gpt-2/vocab.gguf"};
    for (size_t i = 0; i < 2; i++) {
        stint_tokenizer *t = open_shared(files[i]);
        for (int round = 0; round < 500; round++) {
            char text[256], decoded[MAX];
            int32_t ids[MAX];
            size_t n = random_text(text), n_ids, n_decoded;
            assert_int_equal(stint_tokenize(t, text, n, STINT_TOKENIZE_PLAIN, ids, MAX, &n_ids),
                             STINT_OK);
            assert_int_equal(stint_detokenize(t, ids, n_ids, STINT_DETOKENIZE_SPECIAL, decoded,
                                              sizeof decoded, &n_decoded),
                             STINT_OK);
            assert_int_equal(n_decoded, n);
            assert_memory_equal(decoded, text, n);
        }
        stint_tokenizer_close(t);
    }
}

// Sizes alone first, then ids into exactly that room; one less is too little.
static void the_needed_room_is_told(void **state) {
    (void)state;
    stint_tokenizer *t = open_shared("fixtures/tokenizers/novels/tokenizer.json");
    const char *text = "It was a dark and stormy night.";
    int32_t ids[64];
    char decoded[64];
    size_t n = 0, n_again = 0, n_bytes = 0;
    assert_int_equal(stint_tokenize(t, text, strlen(text), 0, NULL, 0, &n), STINT_OK);
    assert_true(n > 4 && n < 64);
    assert_int_equal(stint_tokenize(t, text, strlen(text), 0, ids, n, &n_again), STINT_OK);
    assert_int_equal(n_again, n);
    assert_int_equal(stint_tokenize(t, text, strlen(text), 0, ids, n - 1, &n_again), STINT_E_LIMIT);
    assert_int_equal(stint_detokenize(t, ids, n, 0, NULL, 0, &n_bytes), STINT_OK);
    assert_int_equal(n_bytes, strlen(text));
    assert_int_equal(stint_detokenize(t, ids, n, 0, decoded, n_bytes, &n_bytes), STINT_E_LIMIT);
    assert_int_equal(stint_detokenize(t, ids, n, 0, decoded, n_bytes + 1, &n_bytes), STINT_OK);
    assert_string_equal(decoded, text);
    stint_tokenizer_close(t);
}

struct job {
    const stint_tokenizer *t;
    const char *text;
    size_t n_bytes, n_ids;
    int32_t *ids;
    stint_status status;
};

static void *run_job(void *argument) {
    struct job *job = argument;
    for (int round = 0; round < 20 && job->status == STINT_OK; round++)
        job->status =
            stint_tokenize(job->t, job->text, job->n_bytes, 0, job->ids, job->n_bytes, &job->n_ids);
    return NULL;
}

static void threads_share_a_tokenizer(void **state) {
    (void)state;
    stint_tokenizer *t = open_shared("fixtures/tokenizers/qwen2.5/vocab.json");
    size_t n;
    char *text = (char *)ts_read(ts_shared("fixtures/tokenizers/qwen2.5/golden.jsonl"), &n);
    struct job jobs[N_THREADS] = {{0}};
    pthread_t threads[N_THREADS];
    for (size_t i = 0; i < N_THREADS; i++) {
        jobs[i] = (struct job){.t = t, .text = text, .n_bytes = n, .ids = calloc(n, 4)};
        assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    for (size_t i = 0; i < N_THREADS; i++) {
        assert_int_equal(jobs[i].status, STINT_OK);
        assert_int_equal(jobs[i].n_ids, jobs[0].n_ids);
        assert_memory_equal(jobs[i].ids, jobs[0].ids, jobs[0].n_ids * 4);
    }
    for (size_t i = 0; i < N_THREADS; i++) free(jobs[i].ids);
    free(text);
    stint_tokenizer_close(t);
}

// A quadratic algorithm would run for minutes here, into the test's time limit.
static void a_megabyte_long_word_ends(void **state) {
    (void)state;
    static const char *const files[] = {"fixtures/tokenizers/smollm2/tokenizer.json",
                                        "fixtures/tokenizers/llama2-hf/tokenizer.json",
                                        "fixtures/tokenizers/llama2-spm/tokenizer.model",
                                        "fixtures/tokenizers/gguf-deepseek-llm/vocab.gguf"};
    enum { LONG = 1 << 20 };
    char *text = malloc(LONG);
    assert_non_null(text);
    for (size_t i = 0; i < LONG; i++) text[i] = (char)('a' + ts_random_below(26));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        stint_tokenizer *t = open_shared(files[i]);
        size_t n = 0;
        assert_int_equal(stint_tokenize(t, text, LONG, 0, NULL, 0, &n), STINT_OK);
        assert_true(n > LONG / 10 && n < LONG);
        stint_tokenizer_close(t);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level_tokens_lose_nothing),
        cmocka_unit_test(the_needed_room_is_told),
        cmocka_unit_test(threads_share_a_tokenizer),
        cmocka_unit_test(a_megabyte_long_word_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
