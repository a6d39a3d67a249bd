// SPDX-License-Identifier: Apache-2.0
// Answers as clients read them.
#include "server/api/response.h"
#include "support/support.h"
#include "support/transcript.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

// A choice whose tokens make `text`, each certain at once.
static void grow(struct st_transcript *choice, const char *text) {
    int32_t ids[32];
    char piece[64];
    size_t n = ts_encode(text, ids), n_piece;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(
            stint_detokenize(ts_tokenizer, &ids[i], 1, 0, piece, sizeof piece, &n_piece), STINT_OK);
        ts_take(choice, ids[i], piece);
    }
}

static struct st_response response_of(bool chat, bool logprobs) {
    return (struct st_response){.id = "id-1",
                                .created = 7,
                                .model = "m\"",
                                .fingerprint = "fp",
                                .chat = chat,
                                .logprobs = logprobs,
                                .tokenizer = ts_tokenizer};
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
    struct st_transcript choices[2] = {{.ended = false}};
    const struct st_response response = response_of(true, true);
    const struct st_response_usage usage = {
        .prompt_tokens = 5, .cached_tokens = 2, .completion_tokens = 9};
    struct st_json_text out = {0};
    grow(&choices[0], "The old man");
    st_transcript_end(&choices[0], STINT_STOP_EOS);
    grow(&choices[1], "She said \"no\"\n");
    st_transcript_end(&choices[1], STINT_STOP_LENGTH);
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
    st_transcript_free(&choices[0]);
    st_transcript_free(&choices[1]);
}

static void reasoning_has_a_field_of_its_own(void **state) {
    (void)state;
    struct st_transcript choice = {.reasoning.phase = ST_REASONING_INSIDE};
    struct st_json_text out = {0};
    struct st_response response = response_of(true, true);
    const struct st_response_usage usage = {.prompt_tokens = 5,
                                            .cached_tokens = 2,
                                            .completion_tokens = 9,
                                            .reasoning_tokens = 4};
    response.reasons = true;
    grow(&choice, "Well.</think>\n\nThe old man");
    st_transcript_end(&choice, STINT_STOP_EOS);
    st_response_whole(&response, &choice, 1, &usage, &out);
    json_t *json = read_back(&out), *message = json_object_get(choice_of(json, 0), "message");
    assert_string_equal(string_at(message, "reasoning_content"), "Well.");
    assert_string_equal(string_at(message, "content"), "The old man");
    json_t *entries = json_object_get(json_object_get(choice_of(json, 0), "logprobs"), "content");
    assert_int_equal(json_array_size(entries), 3);
    json_t *details = json_object_get(json_object_get(json, "usage"), "completion_tokens_details");
    assert_int_equal(json_integer_value(json_object_get(details, "reasoning_tokens")), 4);
    json_decref(json);
    st_response_thoughts(&response, 2, &choice, st_transcript_thoughts(&choice), &out);
    json = read_back(&out);
    json_t *delta = json_object_get(choice_of(json, 0), "delta");
    assert_string_equal(string_at(delta, "reasoning_content"), "Well.");
    assert_null(json_object_get(delta, "content"));
    json_decref(json);
    st_response_thoughts(&response, 2, &choice, st_transcript_thoughts(&choice), &out);
    assert_int_equal(out.bytes.count, 0); // told already
    st_transcript_free(&choice);
}

// An answer that was cut off within its reasoning is all reasoning.
static void an_answer_may_be_all_reasoning(void **state) {
    (void)state;
    struct st_transcript choice = {.reasoning.phase = ST_REASONING_BEFORE};
    struct st_json_text out = {0};
    const struct st_response response = response_of(true, true);
    const struct st_response_usage usage = {0};
    grow(&choice, "<think>\nWell </th");
    st_transcript_end(&choice, STINT_STOP_LENGTH);
    st_response_whole(&response, &choice, 1, &usage, &out);
    json_t *json = read_back(&out), *message = json_object_get(choice_of(json, 0), "message");
    assert_string_equal(string_at(message, "reasoning_content"), "Well </th");
    assert_string_equal(string_at(message, "content"), "");
    json_t *entries = json_object_get(json_object_get(choice_of(json, 0), "logprobs"), "content");
    assert_int_equal(json_array_size(entries), 0);
    assert_null(json_object_get(json_object_get(json, "usage"), "completion_tokens_details"));
    json_decref(json);
    st_transcript_free(&choice);
}

static void chunks_of_both_kinds(void **state) {
    (void)state;
    struct st_transcript choice = {0};
    struct st_json_text out = {0};
    struct st_response chat = response_of(true, false), text = response_of(false, true);
    grow(&choice, "The old");
    const struct st_piece all = st_transcript_all(&choice);
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
    const struct st_response_usage usage = {.prompt_tokens = 1, .completion_tokens = 2};
    st_response_last(&text, &usage, &out);
    json = read_back(&out);
    assert_int_equal(json_array_size(json_object_get(json, "choices")), 0);
    assert_non_null(json_object_get(json, "usage"));
    json_decref(json);
    st_transcript_free(&choice);
}

static void calls_are_messages_of_their_own(void **state) {
    (void)state;
    struct st_transcript choice = {0};
    struct st_json_text out = {0};
    const struct st_response response = response_of(true, false);
    const struct st_response_usage usage = {0};
    grow(&choice, "whatever");
    st_transcript_end(&choice, STINT_STOP_EOS);
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
    st_response_calls(&response, 0, &choice.calls, "", &out);
    json = read_back(&out);
    call = json_array_get(
        json_object_get(json_object_get(choice_of(json, 0), "delta"), "tool_calls"), 0);
    assert_int_equal(json_integer_value(json_object_get(call, "index")), 0);
    json_decref(json);
    st_transcript_free(&choice);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_chat_answer),
        cmocka_unit_test(reasoning_has_a_field_of_its_own),
        cmocka_unit_test(an_answer_may_be_all_reasoning),
        cmocka_unit_test(chunks_of_both_kinds),
        cmocka_unit_test(calls_are_messages_of_their_own),
    };
    return cmocka_run_group_tests(tests, ts_open_tokenizer, ts_close_tokenizer);
}
