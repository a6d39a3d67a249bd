// SPDX-License-Identifier: Apache-2.0
// Choices grow by events as the engine tells them, and are written as clients read them.
#include "server/api/response.h"
#include "support/support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static stint_tokenizer *tokenizer;

static int open_tokenizer(void **state) {
    (void)state;
    return stint_tokenizer_open(ts_source("models/novels-10m"), &tokenizer);
}

static int close_tokenizer(void **state) {
    (void)state;
    stint_tokenizer_close(tokenizer);
    return 0;
}

static size_t encode(const char *text, int32_t ids[32]) {
    size_t n = 0;
    assert_int_equal(
        stint_tokenize(tokenizer, text, strlen(text), STINT_TOKENIZE_PLAIN, ids, 32, &n), STINT_OK);
    return n;
}

static void take(struct st_choice *choice, int32_t id, const char *certain) {
    const struct st_engine_alternative top[] = {{id, -0.5f}, {id + 1, -2.0f}};
    char piece[ST_PIECE_MAX_BYTES];
    const struct st_engine_event event = {.id = id,
                                          .n_made = st_tokenizer_piece(tokenizer, id, piece),
                                          .logprob = -0.5f,
                                          .top = top,
                                          .n_top = 2,
                                          .text = certain,
                                          .n_bytes = strlen(certain)};
    assert_int_equal(st_choice_take(choice, &event), STINT_OK);
}

static void end(struct st_choice *choice, enum st_engine_end how, const char *rest) {
    const struct st_engine_usage usage = {.prompt_tokens = 3, .generated_tokens = 2};
    const struct st_engine_event event = {
        .id = -1, .text = rest, .n_bytes = strlen(rest), .end = how, .usage = &usage};
    assert_int_equal(st_choice_take(choice, &event), STINT_OK);
}

// A choice whose tokens make `text`, each certain at once.
static void grow(struct st_choice *choice, const char *text) {
    int32_t ids[32];
    char piece[64];
    size_t n = encode(text, ids), n_piece;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(stint_detokenize(tokenizer, &ids[i], 1, 0, piece, sizeof piece, &n_piece),
                         STINT_OK);
        take(choice, ids[i], piece);
    }
}

static struct st_response response_of(bool chat, bool logprobs) {
    return (struct st_response){.id = "id-1",
                                .created = 7,
                                .model = "m\"",
                                .fingerprint = "fp",
                                .chat = chat,
                                .logprobs = logprobs,
                                .tokenizer = tokenizer};
}

// Of one object, or of the one chunk behind "data: ".
static json_t *read_back(struct st_json_text *out) {
    json_error_t error;
    const char *text = out->bytes.data;
    size_t n = out->bytes.count;
    assert_false(out->failed);
    if (n > 6 && memcmp(text, "data: ", 6) == 0) {
        assert_memory_equal(text + n - 2, "\n\n", 2);
        text += 6;
        n -= 6;
    }
    json_t *json = json_loadb(text, n, 0, &error);
    if (json == NULL) fail_msg("%s: %.*s", error.text, (int)n, text);
    st_bytes_free(&out->bytes);
    return json;
}

static const char *string_at(const json_t *json, const char *key) {
    return json_string_value(json_object_get(json, key));
}

static json_t *choice_of(const json_t *json, size_t i) {
    return json_array_get(json_object_get(json, "choices"), i);
}

static void a_whole_chat_answer(void **state) {
    (void)state;
    struct st_choice choices[2] = {{.end = ST_ENGINE_GOES_ON}};
    const struct st_response response = response_of(true, true);
    const struct st_response_usage usage = {5, 2, 9, 0};
    struct st_json_text out = {0};
    grow(&choices[0], "The old man");
    end(&choices[0], ST_ENGINE_STOPPED, "");
    grow(&choices[1], "She said \"no\"\n");
    end(&choices[1], ST_ENGINE_LENGTH, "");
    st_response_whole(&response, choices, 2, &usage, &out);
    json_t *json = read_back(&out);
    assert_string_equal(string_at(json, "object"), "chat.completion");
    assert_string_equal(string_at(json, "model"), "m\"");
    json_t *message = json_object_get(choice_of(json, 1), "message");
    assert_string_equal(string_at(message, "content"), "She said \"no\"\n");
    assert_string_equal(string_at(choice_of(json, 0), "finish_reason"), "stop");
    assert_string_equal(string_at(choice_of(json, 1), "finish_reason"), "length");
    json_t *entries = json_object_get(json_object_get(choice_of(json, 0), "logprobs"), "content");
    assert_int_equal(json_array_size(entries), choices[0].n_tokens);
    json_t *tops = json_object_get(json_array_get(entries, 0), "top_logprobs");
    assert_int_equal(json_array_size(tops), 2);
    json_t *told = json_object_get(json, "usage");
    assert_int_equal(json_integer_value(json_object_get(told, "total_tokens")), 14);
    json_decref(json);
    st_choice_free(&choices[0]);
    st_choice_free(&choices[1]);
}

static void tokens_wait_for_their_text(void **state) {
    (void)state;
    struct st_choice choice = {0};
    int32_t ids[32];
    assert_int_equal(encode("The old man", ids), 3);
    take(&choice, ids[0], "The");
    struct st_piece piece = st_choice_news(&choice);
    assert_int_equal(piece.to, 3);
    assert_int_equal(piece.last, 1);
    take(&choice, ids[1], ""); // may begin a stop text
    piece = st_choice_news(&choice);
    assert_int_equal(piece.from, 3);
    assert_int_equal(piece.to, 3);
    assert_int_equal(piece.first, piece.last);
    take(&choice, ids[2], " old man");
    piece = st_choice_news(&choice);
    assert_int_equal(piece.last - piece.first, 2);
    st_choice_free(&choice);
}

static void tokens_of_a_stop_text_are_not_told(void **state) {
    (void)state;
    struct st_choice choice = {0};
    int32_t ids[32];
    assert_int_equal(encode("The old man", ids), 3);
    take(&choice, ids[0], "The");
    take(&choice, ids[1], " o"); // "ld man" is the stop text
    take(&choice, ids[2], "");
    end(&choice, ST_ENGINE_STOPPED, "");
    struct st_piece piece = st_choice_all(&choice);
    assert_int_equal(piece.to, 5);
    assert_int_equal(piece.last, 2);
    st_choice_free(&choice);
}

static void pieces_put_together_are_the_whole(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct st_choice choice = {0};
        int32_t ids[32];
        char text[512] = "", told[512] = "";
        size_t n = encode("It was a cold evening in November, and the old man said \"caf\xc3\xa9\"",
                          ids),
               n_certain = 0, n_tokens = 0;
        for (size_t i = 0; i < n; i++) {
            size_t n_piece;
            char piece[64], certain[512];
            stint_detokenize(tokenizer, &ids[i], 1, 0, piece, sizeof piece, &n_piece);
            strcat(text, piece);
            bool last = i + 1 == n;
            size_t to =
                last ? strlen(text) : n_certain + ts_random_below(strlen(text) - n_certain + 1);
            snprintf(certain, sizeof certain, "%.*s", (int)(to - n_certain), text + n_certain);
            take(&choice, ids[i], certain);
            n_certain = to;
            struct st_piece news = st_choice_news(&choice);
            strncat(told, choice.text.data + news.from, news.to - news.from);
            assert_int_equal(news.first, n_tokens);
            n_tokens = news.last;
        }
        end(&choice, ST_ENGINE_LENGTH, "");
        assert_int_equal(st_choice_news(&choice).last, n);
        assert_string_equal(told, text);
        st_choice_free(&choice);
    }
}

// Whatever is certain when: the reasoning and the answer in pieces are those of the whole, and the
// tokens that are told are the answer's.
static void reasoning_in_pieces_is_the_whole(void **state) {
    static const char text[] = "<think>\nWell, he said.\n</think>\n\nThe old man";
    int32_t ids[32];
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct st_choice choice = {.reasoning.phase = ST_REASONING_BEFORE};
        char thoughts[64] = "", told[64] = "", piece[64];
        size_t n = encode(text, ids), n_made = 0, n_certain = 0, n_tokens = 0, n_piece;
        for (size_t i = 0; i < n; i++) {
            char certain[64];
            stint_detokenize(tokenizer, &ids[i], 1, 0, piece, sizeof piece, &n_piece);
            n_made += n_piece;
            size_t to = i + 1 == n ? n_made : n_certain + ts_random_below(n_made - n_certain + 1);
            snprintf(certain, sizeof certain, "%.*s", (int)(to - n_certain), text + n_certain);
            take(&choice, ids[i], certain);
            n_certain = to;
            struct st_piece thought = st_choice_thoughts(&choice), news = st_choice_news(&choice);
            strncat(thoughts, choice.text.data + thought.from, thought.to - thought.from);
            strncat(told, choice.text.data + news.from, news.to - news.from);
            n_tokens += news.last - news.first;
        }
        end(&choice, ST_ENGINE_LENGTH, "");
        assert_string_equal(thoughts, "Well, he said.");
        assert_string_equal(told, "The old man");
        assert_int_equal(n_tokens, 3);
        struct st_piece all = st_choice_all(&choice), thought = st_choice_all_thoughts(&choice);
        assert_int_equal(all.to - all.from, strlen(told));
        assert_int_equal(all.last - all.first, 3);
        assert_int_equal(thought.to - thought.from, strlen(thoughts));
        assert_int_equal(st_choice_reasoning_tokens(&choice), n - 3);
        st_choice_free(&choice);
    }
}

static void reasoning_has_a_field_of_its_own(void **state) {
    (void)state;
    struct st_choice choice = {.reasoning.phase = ST_REASONING_INSIDE};
    struct st_json_text out = {0};
    struct st_response response = response_of(true, true);
    const struct st_response_usage usage = {5, 2, 9, 4};
    response.reasons = true;
    grow(&choice, "Well.</think>\n\nThe old man");
    end(&choice, ST_ENGINE_STOPPED, "");
    st_response_whole(&response, &choice, 1, &usage, &out);
    json_t *json = read_back(&out), *message = json_object_get(choice_of(json, 0), "message");
    assert_string_equal(string_at(message, "reasoning_content"), "Well.");
    assert_string_equal(string_at(message, "content"), "The old man");
    json_t *entries = json_object_get(json_object_get(choice_of(json, 0), "logprobs"), "content");
    assert_int_equal(json_array_size(entries), 3);
    json_t *details = json_object_get(json_object_get(json, "usage"), "completion_tokens_details");
    assert_int_equal(json_integer_value(json_object_get(details, "reasoning_tokens")), 4);
    json_decref(json);
    st_response_thoughts(&response, 2, &choice, st_choice_thoughts(&choice), &out);
    json = read_back(&out);
    json_t *delta = json_object_get(choice_of(json, 0), "delta");
    assert_string_equal(string_at(delta, "reasoning_content"), "Well.");
    assert_null(json_object_get(delta, "content"));
    json_decref(json);
    st_response_thoughts(&response, 2, &choice, st_choice_thoughts(&choice), &out);
    assert_int_equal(out.bytes.count, 0); // told already
    st_choice_free(&choice);
}

// An answer that was cut off within its reasoning is all reasoning.
static void an_answer_may_be_all_reasoning(void **state) {
    (void)state;
    struct st_choice choice = {.reasoning.phase = ST_REASONING_BEFORE};
    struct st_json_text out = {0};
    const struct st_response response = response_of(true, true);
    const struct st_response_usage usage = {0};
    grow(&choice, "<think>\nWell </th");
    end(&choice, ST_ENGINE_LENGTH, "");
    st_response_whole(&response, &choice, 1, &usage, &out);
    json_t *json = read_back(&out), *message = json_object_get(choice_of(json, 0), "message");
    assert_string_equal(string_at(message, "reasoning_content"), "Well </th");
    assert_string_equal(string_at(message, "content"), "");
    json_t *entries = json_object_get(json_object_get(choice_of(json, 0), "logprobs"), "content");
    assert_int_equal(json_array_size(entries), 0);
    assert_null(json_object_get(json_object_get(json, "usage"), "completion_tokens_details"));
    json_decref(json);
    st_choice_free(&choice);
}

static void chunks_of_both_kinds(void **state) {
    (void)state;
    struct st_choice choice = {0};
    struct st_json_text out = {0};
    struct st_response chat = response_of(true, false), text = response_of(false, true);
    grow(&choice, "The old");
    const struct st_piece all = st_choice_all(&choice);
    st_response_role(&chat, 1, &out);
    json_t *json = read_back(&out);
    json_t *delta = json_object_get(choice_of(json, 0), "delta");
    assert_string_equal(string_at(delta, "role"), "assistant");
    assert_null(json_object_get(json, "usage"));
    json_decref(json);
    st_response_role(&text, 1, &out);
    assert_int_equal(out.bytes.count, 0);
    st_response_piece(&chat, 1, &choice, all, &out);
    json = read_back(&out);
    assert_int_equal(json_integer_value(json_object_get(choice_of(json, 0), "index")), 1);
    delta = json_object_get(choice_of(json, 0), "delta");
    assert_string_equal(string_at(delta, "content"), "The old");
    json_decref(json);
    text.usage_follows = true;
    st_response_piece(&text, 0, &choice, all, &out);
    json = read_back(&out);
    assert_string_equal(string_at(choice_of(json, 0), "text"), "The old");
    json_t *logprobs = json_object_get(choice_of(json, 0), "logprobs");
    assert_int_equal(json_array_size(json_object_get(logprobs, "tokens")), choice.n_tokens);
    assert_true(json_is_null(json_object_get(json, "usage")));
    json_decref(json);
    st_response_piece(&text, 0, &choice, (struct st_piece){7, 7, 1, 1}, &out);
    assert_int_equal(out.bytes.count, 0); // nothing to tell
    st_response_end(&text, 0, "stop", &out);
    json = read_back(&out);
    assert_string_equal(string_at(choice_of(json, 0), "finish_reason"), "stop");
    json_decref(json);
    const struct st_response_usage usage = {1, 0, 2, 0};
    st_response_last(&text, &usage, &out);
    json = read_back(&out);
    assert_int_equal(json_array_size(json_object_get(json, "choices")), 0);
    assert_non_null(json_object_get(json, "usage"));
    json_decref(json);
    st_choice_free(&choice);
}

static void calls_are_messages_of_their_own(void **state) {
    (void)state;
    struct st_choice choice = {0};
    struct st_json_text out = {0};
    const struct st_response response = response_of(true, false);
    const struct st_response_usage usage = {0};
    grow(&choice, "whatever");
    end(&choice, ST_ENGINE_STOPPED, "");
    choice.calls.calls = calloc(1, sizeof *choice.calls.calls);
    choice.calls.calls[0].name = strdup("f");
    choice.calls.calls[0].arguments = strdup("{\"a\":1}");
    choice.calls.n = 1;
    st_response_whole(&response, &choice, 1, &usage, &out);
    json_t *json = read_back(&out), *message = json_object_get(choice_of(json, 0), "message");
    assert_true(json_is_null(json_object_get(message, "content")));
    json_t *call = json_array_get(json_object_get(message, "tool_calls"), 0);
    assert_string_equal(string_at(json_object_get(call, "function"), "arguments"), "{\"a\":1}");
    assert_string_equal(string_at(choice_of(json, 0), "finish_reason"), "tool_calls");
    json_decref(json);
    st_response_calls(&response, 0, &choice.calls, &out);
    json = read_back(&out);
    call = json_array_get(
        json_object_get(json_object_get(choice_of(json, 0), "delta"), "tool_calls"), 0);
    assert_int_equal(json_integer_value(json_object_get(call, "index")), 0);
    json_decref(json);
    st_choice_free(&choice);
}

static void a_lost_allocation_is_an_error_and_leaks_nothing(void **state) {
    (void)state;
    for (size_t n = 1;; n++) {
        struct st_choice choice = {0};
        const struct st_engine_alternative top = {5, -1.0f};
        const struct st_engine_event event = {
            .id = 5, .top = &top, .n_top = 1, .text = "abc", .n_bytes = 3};
        ts_fail_allocation(n);
        stint_status status = st_choice_take(&choice, &event);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        st_choice_free(&choice);
        assert_int_equal(status, failed ? STINT_E_NOMEM : STINT_OK);
        if (!failed) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_chat_answer),
        cmocka_unit_test(tokens_wait_for_their_text),
        cmocka_unit_test(tokens_of_a_stop_text_are_not_told),
        cmocka_unit_test(pieces_put_together_are_the_whole),
        cmocka_unit_test(reasoning_in_pieces_is_the_whole),
        cmocka_unit_test(reasoning_has_a_field_of_its_own),
        cmocka_unit_test(an_answer_may_be_all_reasoning),
        cmocka_unit_test(chunks_of_both_kinds),
        cmocka_unit_test(calls_are_messages_of_their_own),
        cmocka_unit_test(a_lost_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
