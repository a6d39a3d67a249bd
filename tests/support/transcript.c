// SPDX-License-Identifier: Apache-2.0
#include "support/transcript.h"

#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

stint_tokenizer *ts_tokenizer;

int ts_open_tokenizer(void **state) {
    (void)state;
    return stint_tokenizer_open(ts_trained(), &ts_tokenizer);
}

int ts_close_tokenizer(void **state) {
    (void)state;
    stint_tokenizer_close(ts_tokenizer);
    return 0;
}

size_t ts_encode(const char *text, int32_t ids[32]) {
    size_t n = 0;
    assert_int_equal(
        stint_tokenize(ts_tokenizer, text, strlen(text), STINT_TOKENIZE_PLAIN, ids, 32, &n),
        STINT_OK);
    return n;
}

void ts_take(struct st_transcript *transcript, int32_t id, const char *certain) {
    char piece[ST_PIECE_MAX_BYTES];
    const struct st_token token = {
        .id = id, .logprob = -0.5f, .top = {{id, -0.5f}, {id + 1, -2.0f}}, .n_top = 2};
    size_t n_made = st_tokenizer_piece(ts_tokenizer, id, piece);
    assert_int_equal(st_transcript_token(transcript, &token, n_made), STINT_OK);
    assert_int_equal(st_transcript_text(transcript, certain, strlen(certain)), STINT_OK);
}
