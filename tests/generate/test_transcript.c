// SPDX-License-Identifier: Apache-2.0
// An answer that grows by tokens and certain text, and what of it may be told when.
#include "generate/transcript.h"
#include "support/support.h"
#include "support/transcript.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void tokens_wait_for_their_text(void **state) {
    (void)state;
    struct st_transcript transcript = {0};
    int32_t ids[32];
    assert_int_equal(ts_encode("The old man", ids), 3);
    ts_take(&transcript, ids[0], "The");
    struct st_piece piece = st_transcript_news(&transcript);
    assert_int_equal(piece.to, 3);
    assert_int_equal(piece.last, 1);
    ts_take(&transcript, ids[1], ""); // may begin a stop text
    piece = st_transcript_news(&transcript);
    assert_int_equal(piece.from, 3);
    assert_int_equal(piece.to, 3);
    assert_int_equal(piece.first, piece.last);
    ts_take(&transcript, ids[2], " old man");
    piece = st_transcript_news(&transcript);
    assert_int_equal(piece.last - piece.first, 2);
    st_transcript_free(&transcript);
}

static void tokens_of_a_stop_text_are_not_told(void **state) {
    (void)state;
    struct st_transcript transcript = {0};
    int32_t ids[32];
    assert_int_equal(ts_encode("The old man", ids), 3);
    ts_take(&transcript, ids[0], "The");
    ts_take(&transcript, ids[1], " o"); // "ld man" is the stop text
    ts_take(&transcript, ids[2], "");
    st_transcript_end(&transcript, STINT_STOP_EOS);
    struct st_piece piece = st_transcript_all(&transcript);
    assert_int_equal(piece.to, 5);
    assert_int_equal(piece.last, 2);
    st_transcript_free(&transcript);
}

static void pieces_put_together_are_the_whole(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct st_transcript transcript = {0};
        int32_t ids[32];
        char text[512] = "", told[512] = "";
        size_t n = ts_encode(
                   "It was a cold evening in November, and the old man said \"caf\xc3\xa9\"", ids),
               n_certain = 0, n_tokens = 0;
        for (size_t i = 0; i < n; i++) {
            size_t n_piece;
            char piece[64], certain[512];
            stint_detokenize(ts_tokenizer, &ids[i], 1, 0, piece, sizeof piece, &n_piece);
            strcat(text, piece);
            bool last = i + 1 == n;
            size_t to =
                last ? strlen(text) : n_certain + ts_random_below(strlen(text) - n_certain + 1);
            snprintf(certain, sizeof certain, "%.*s", (int)(to - n_certain), text + n_certain);
            ts_take(&transcript, ids[i], certain);
            n_certain = to;
            struct st_piece news = st_transcript_news(&transcript);
            strncat(told, transcript.text.data + news.from, news.to - news.from);
            assert_int_equal(news.first, n_tokens);
            n_tokens = news.last;
        }
        st_transcript_end(&transcript, STINT_STOP_LENGTH);
        assert_int_equal(st_transcript_news(&transcript).last, n);
        assert_string_equal(told, text);
        st_transcript_free(&transcript);
    }
}

// Whatever is certain when: the reasoning and the answer in pieces are those of the whole, and the
// tokens that are told are the answer's.
static void reasoning_in_pieces_is_the_whole(void **state) {
    static const char text[] = "<think>\nWell, he said.\n</think>\n\nThe old man";
    int32_t ids[32];
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct st_transcript transcript = {.reasoning.phase = ST_REASONING_BEFORE};
        char thoughts[64] = "", told[64] = "", piece[64];
        size_t n = ts_encode(text, ids), n_made = 0, n_certain = 0, n_tokens = 0, n_piece;
        for (size_t i = 0; i < n; i++) {
            char certain[64];
            stint_detokenize(ts_tokenizer, &ids[i], 1, 0, piece, sizeof piece, &n_piece);
            n_made += n_piece;
            size_t to = i + 1 == n ? n_made : n_certain + ts_random_below(n_made - n_certain + 1);
            snprintf(certain, sizeof certain, "%.*s", (int)(to - n_certain), text + n_certain);
            ts_take(&transcript, ids[i], certain);
            n_certain = to;
            struct st_piece thought = st_transcript_thoughts(&transcript),
                            news = st_transcript_news(&transcript);
            strncat(thoughts, transcript.text.data + thought.from, thought.to - thought.from);
            strncat(told, transcript.text.data + news.from, news.to - news.from);
            n_tokens += news.last - news.first;
        }
        st_transcript_end(&transcript, STINT_STOP_LENGTH);
        assert_string_equal(thoughts, "Well, he said.");
        assert_string_equal(told, "The old man");
        assert_int_equal(n_tokens, 3);
        struct st_piece all = st_transcript_all(&transcript),
                        thought = st_transcript_all_thoughts(&transcript);
        assert_int_equal(all.to - all.from, strlen(told));
        assert_int_equal(all.last - all.first, 3);
        assert_int_equal(thought.to - thought.from, strlen(thoughts));
        assert_int_equal(st_transcript_reasoning_tokens(&transcript), n - 3);
        st_transcript_free(&transcript);
    }
}

static void a_lost_allocation_is_an_error_and_leaks_nothing(void **state) {
    (void)state;
    const struct st_token token = {.id = 5, .top = {{5, -1.0f}}, .n_top = 1};
    for (size_t n = 1;; n++) {
        struct st_transcript transcript = {0};
        ts_fail_allocation(n);
        stint_status status = st_transcript_token(&transcript, &token, 3);
        if (status == STINT_OK) status = st_transcript_text(&transcript, "abc", 3);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        st_transcript_free(&transcript);
        assert_int_equal(status, failed ? STINT_E_NOMEM : STINT_OK);
        if (!failed) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_wait_for_their_text),
        cmocka_unit_test(tokens_of_a_stop_text_are_not_told),
        cmocka_unit_test(pieces_put_together_are_the_whole),
        cmocka_unit_test(reasoning_in_pieces_is_the_whole),
        cmocka_unit_test(a_lost_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, ts_open_tokenizer, ts_close_tokenizer);
}
