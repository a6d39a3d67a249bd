// SPDX-License-Identifier: Apache-2.0
// Masks equal what pushing each token says; random tokens of masks end in JSON.
#include "constraint/constraint.h"
#include "constraint/run.h"
#include "constraint/token_trie.h"
#include "support/constraint_cases.h"
#include "support/support.h"
#include "tokenizer/parts.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct setting {
    struct stint_tokenizer *tokenizer;
    struct st_constraint_vocab *vocab;
    size_t n_tokens;
    uint8_t *allowed;
};

static void open_setting(struct setting *s, struct stint_tokenizer *tokenizer) {
    s->tokenizer = tokenizer;
    s->n_tokens = st_tokenizer_vocab(tokenizer);
    s->allowed = malloc(s->n_tokens / 8 + 1);
    assert_int_equal(st_constraint_vocab_open(tokenizer, &s->vocab), STINT_OK);
}

static void open_file(struct setting *s, const char *path) {
    struct stint_tokenizer *tokenizer = NULL;
    if (st_tokenizer_open(path, &tokenizer) != STINT_OK) fail_msg("%s", st_error_text());
    open_setting(s, tokenizer);
}

static void close_setting(struct setting *s) {
    st_constraint_vocab_close(s->vocab);
    st_tokenizer_close(s->tokenizer);
    free(s->allowed);
}

static struct st_constraint *compile(const char *schema) {
    struct st_constraint *c = NULL;
    json_t *json = json_loads(schema, JSON_DECODE_ANY, NULL);
    if (st_constraint_schema(json, &c) != STINT_OK) fail_msg("%s: %s", schema, st_error_text());
    json_decref(json);
    return c;
}

static bool is_allowed(const struct setting *s, size_t id) {
    return s->allowed[id / 8] >> id % 8 & 1;
}

// What the mask must say of a token, by walking its bytes alone.
static bool takes(struct setting *s, struct st_constraint_state *state, int32_t id) {
    char bytes[ST_PIECE_MAX_BYTES];
    size_t n = st_tokenizer_piece(s->tokenizer, id, bytes), first = 0;
    size_t n_threads = state->n_threads, n_frames = state->n_frames, to = n_threads;
    enum st_token_kind kind = st_vocab_kind(&s->tokenizer->vocab, id);
    if (n == 0 || n > ST_TRIE_DEPTH || s->tokenizer->vocab.tokens[id].added ||
        (kind != ST_TOKEN_NORMAL && kind != ST_TOKEN_BYTE))
        return false;
    for (size_t i = 0; i < n && n_threads; i++) {
        n_threads = st_constraint_step(state, first, n_threads, (unsigned char)bytes[i], to);
        first = to;
        to += n_threads;
    }
    state->n_frames = n_frames;
    return n_threads > 0;
}

static void check_mask(struct setting *s, struct st_constraint_state *state) {
    size_t n_threads = state->n_threads, n_frames = state->n_frames;
    st_constraint_mask(state, s->vocab, s->allowed);
    assert_int_equal(state->n_threads, n_threads);
    assert_int_equal(state->n_frames, n_frames);
    for (size_t id = 0; id < s->n_tokens; id++)
        if (takes(s, state, (int32_t)id) != is_allowed(s, id)) fail_msg("token %zu", id);
}

// A token of the mask, at random; one that begins with a closing mark where the text is long.
static int32_t choose(struct setting *s, size_t length) {
    static const char closing[] = "\"\"}],bd@.";
    char wanted = closing[ts_random_below(sizeof closing - 1)], bytes[ST_PIECE_MAX_BYTES];
    int32_t chosen = -1;
    size_t n_seen = 0;
    for (size_t id = 0; id < s->n_tokens; id++) {
        if (!is_allowed(s, id)) continue;
        n_seen++;
        if (ts_random_below(n_seen) == 0) chosen = (int32_t)id;
        if (length < 100 || st_tokenizer_piece(s->tokenizer, (int32_t)id, bytes) != 1) continue;
        if (bytes[0] == wanted) return (int32_t)id;
    }
    return chosen;
}

enum { TEXT_MAX = 40000 };

// Follows masks to the end; every `every`-th is compared with pushes.
static void walk(struct setting *s, const char *schema, size_t every) {
    static char text[TEXT_MAX + ST_PIECE_MAX_BYTES];
    struct st_constraint *c = compile(schema);
    struct st_constraint_state *state = NULL;
    size_t n = 0;
    assert_int_equal(st_constraint_begin(c, &state), STINT_OK);
    for (size_t step = ts_random_below(every); n < TEXT_MAX; step++) {
        if (step % every == 0)
            check_mask(s, state);
        else
            st_constraint_mask(state, s->vocab, s->allowed);
        int32_t id = choose(s, n);
        bool may_end = st_constraint_complete(state);
        if (id < 0 && !may_end) fail_msg("%s: stuck behind %.*s", schema, (int)n, text);
        if (id < 0 || (may_end && ts_random_below(4) == 0)) break;
        size_t bytes = st_tokenizer_piece(s->tokenizer, id, text + n);
        assert_true(st_constraint_push(state, text + n, bytes));
        n += bytes;
    }
    if (n >= TEXT_MAX) fail_msg("%s does not end: %.*s", schema, 500, text);
    json_t *json = json_loadb(text, n, JSON_DECODE_ANY, NULL);
    if (!json) fail_msg("%s gives %.*s", schema, (int)n, text);
    json_decref(json);
    st_constraint_end(state);
    st_constraint_free(c);
}

static void walk_all(struct setting *s, size_t rounds, size_t every) {
    for (size_t i = 0; i < N_CONSTRAINT_CASES; i++)
        for (size_t round = 0; round < rounds; round++) walk(s, constraint_cases[i].schema, every);
}

static const char small[] =
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"<unk>\":0,\"<0xC3>\":1,\"<0xA9>\":2,\"<0x22>\":3,"
    "\"\xe2\x96\x81\":4,\"\xe2\x96\x81{\":5,\"a\":6,\"aa\":7,\"\\\"\":8,\"\\\"a\":9,\"{}\":10,"
    "\"}\":11,\"\\\":\":12,\"1\":13,\"\xc3\xa9\":14,\"\\\\\":15,\"u00e\":16,\"]]\":17,\"[\":18},"
    "\"merges\":[],\"unk_token\":\"<unk>\",\"byte_fallback\":true},\"decoder\":{\"type\":"
    "\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},"
    "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]},\"added_tokens\":[{"
    "\"id\":0,\"content\":\"<unk>\",\"special\":true},{\"id\":19,\"content\":\"}\\n\",\"special\":"
    "false,\"normalized\":false}]}";

static void assert_allowed(struct setting *s, const char *schema, const char *before,
                           const char *wanted) {
    struct st_constraint *c = compile(schema);
    struct st_constraint_state *state = NULL;
    char got[256] = "";
    assert_int_equal(st_constraint_begin(c, &state), STINT_OK);
    assert_true(st_constraint_push(state, before, strlen(before)));
    check_mask(s, state);
    for (size_t id = 0; id < s->n_tokens; id++)
        if (is_allowed(s, id))
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%zu", *got ? " " : "", id);
    assert_string_equal(got, wanted);
    st_constraint_end(state);
    st_constraint_free(c);
}

static void masks_of_a_small_vocabulary(void **state) {
    (void)state;
    struct stint_tokenizer *tokenizer = NULL;
    struct setting s;
    if (st_tokenizer_from_json("small", small, sizeof small - 1, &tokenizer) != STINT_OK)
        fail_msg("%s", st_error_text());
    open_setting(&s, tokenizer);
    const char *object = "{\"type\":\"object\"}", *text = "{\"type\":\"string\",\"maxLength\":2}";
    assert_allowed(&s, object, "", "4 5 10");
    assert_allowed(&s, object, "{", "3 4 8 9 11 12"); // not the added token 19
    assert_allowed(&s, object, "{\"", "1 3 4 5 6 7 8 10 11 12 13 14 15 16 17 18");
    assert_allowed(&s, object, "{\"\xc3", "2");
    assert_allowed(&s, object, "{}", "");
    assert_allowed(&s, object, "{\"\\", "3 8 9 12 15 16"); // an escaped quote
    assert_allowed(&s, text, "\"", "1 3 4 5 6 7 8 10 11 13 14 15 17 18");
    assert_allowed(&s, text, "\"a", "1 3 4 6 8 11 13 14 15 18");
    assert_allowed(&s, text, "\"aa", "3 8");
    assert_allowed(&s, "{\"anyOf\":[{\"const\":\"aa\"},{\"type\":\"string\",\"maxLength\":1}]}",
                   "\"", "1 3 4 6 7 8 11 13 14 15 18");
    close_setting(&s);
}

static void masks_are_what_pushes_say(void **state) {
    (void)state;
    struct setting s;
    open_file(&s, ts_source("models/novels-10m"));
    walk_all(&s, 1, 5);
    close_setting(&s);
}

static void large_vocabularies(void **state) {
    (void)state;
    static const char *const names[] = {"qwen2.5", "llama2-spm"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        struct setting s;
        snprintf(path, sizeof path, "fixtures/tokenizers/%s", names[i]);
        open_file(&s, ts_shared(path));
        walk_all(&s, 1, 400);
        close_setting(&s);
    }
}

static void failed_allocations_are_reported(void **state) {
    (void)state;
    struct stint_tokenizer *tokenizer = NULL;
    stint_status status = STINT_E_NOMEM;
    st_tokenizer_from_json("small", small, sizeof small - 1, &tokenizer);
    assert_non_null(tokenizer);
    for (size_t n = 1; status != STINT_OK; n++) {
        struct st_constraint_vocab *vocab = NULL;
        ts_fail_allocation(n);
        status = st_constraint_vocab_open(tokenizer, &vocab);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        assert_int_equal(status, failed ? STINT_E_NOMEM : STINT_OK);
        st_constraint_vocab_close(vocab);
    }
    st_tokenizer_close(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_of_a_small_vocabulary),
        cmocka_unit_test(masks_are_what_pushes_say),
        cmocka_unit_test(large_vocabularies),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
