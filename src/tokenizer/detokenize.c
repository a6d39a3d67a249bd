// SPDX-License-Identifier: Apache-2.0
// Decoding, token by token. A run is a sequence of byte tokens (<0xNN>). As in Hugging Face's
// tokenizers, a run that is not UTF-8 as a whole becomes one U+FFFD for each of its bytes. A stream
// does not know the end of a run: it writes the characters before the first broken byte.
// Everything else is repaired as UTF-8 decoders do, with one U+FFFD for each broken sequence.
#include "tokenizer/tokenizer.h"

#include "base/size.h"
#include "base/utf8.h"
#include "tokenizer/parts.h"

#include <string.h>

enum { CAPACITY = ST_PIECE_MAX_BYTES + 8 }; // of the text that a push writes

static bool is_byte(const struct stint_tokenizer *t, int32_t id) {
    return st_vocab_kind(&t->vocab, id) == ST_TOKEN_BYTE;
}

static bool is_skipped(const struct stint_tokenizer *t, int32_t id, uint32_t flags) {
    return st_tokenizer_is_special(t, id) && !(flags & STINT_DETOKENIZE_SPECIAL);
}

size_t st_tokenizer_piece(const struct stint_tokenizer *t, int32_t id, char *out) {
    size_t n = 0, written = 0;
    const char *text = st_vocab_text(&t->vocab, id, &n);
    if (!text) return 0;
    if (is_byte(t, id)) {
        out[0] = (char)t->vocab.tokens[id].byte;
        return 1;
    }
    // Added tokens are stored as they are searched for; decoding takes them for mapped bytes too.
    bool mapped = t->byte_level && t->vocab.tokens[id].added;
    if (mapped && st_byte_level_decode(text, n, out, &written)) return written;
    bool metaspace = t->metaspace && !st_tokenizer_is_special(t, id);
    written = 0;
    for (size_t i = 0; i < n; i++) {
        if (metaspace && n - i >= 3 && memcmp(text + i, "\xe2\x96\x81", 3) == 0) {
            out[written++] = ' ';
            i += 2;
        } else {
            out[written++] = text[i];
        }
    }
    return written;
}

// U+FFFD is longer than the bytes it stands for, so the text is cut to the callers' capacity.
static size_t put_broken(char *text, size_t written, size_t n) {
    for (size_t i = 0; i < n && written + 3 <= CAPACITY; i++, written += 3)
        memcpy(text + written, "\xef\xbf\xbd", 3);
    return written;
}

// Writes the pending bytes as broken ones.
static size_t give_up(struct st_detokenizer *state, char *text) {
    size_t n = state->in_run ? state->n_pending : state->n_pending > 0;
    state->n_pending = 0;
    return put_broken(text, 0, n);
}

static size_t put_characters(struct st_detokenizer *state, const char *bytes, size_t n, char *text,
                             size_t written) {
    size_t i = 0;
    while (i < n && written + 4 <= CAPACITY) {
        size_t length = state->broken ? 0 : st_utf8_length(bytes + i, n - i);
        if (length) {
            memcpy(text + written, bytes + i, length);
            written += length;
            i += length;
            continue;
        }
        if (!state->broken && st_utf8_unfinished(bytes + i, n - i)) break;
        state->broken = state->in_run;
        size_t lost = state->in_run ? n - i : st_utf8_broken(bytes + i, n - i);
        written = put_broken(text, written, state->in_run ? lost : 1);
        i += lost;
    }
    state->n_pending = st_min(n - i, sizeof state->pending);
    memcpy(state->pending, bytes + i, state->n_pending);
    return written;
}

size_t st_detokenizer_push(struct st_detokenizer *state, const struct stint_tokenizer *tokenizer,
                           int32_t id, uint32_t flags, char *text) {
    char bytes[CAPACITY];
    size_t n_piece = st_tokenizer_piece(tokenizer, id, bytes + sizeof state->pending), written = 0;
    if (n_piece == 0 || is_skipped(tokenizer, id, flags)) return 0;
    if (is_byte(tokenizer, id)) {
        state->in_run = true;
    } else if (state->in_run) {
        written = give_up(state, text);
        state->in_run = state->broken = false;
    }
    size_t n = state->n_pending;
    char *start = bytes + sizeof state->pending - n;
    memcpy(start, state->pending, n);
    written = put_characters(state, start, n + n_piece, text, written);
    bool strip = tokenizer->strip_first_space && !state->begun && written && text[0] == ' ';
    state->begun = state->begun || written;
    if (strip) memmove(text, text + 1, --written);
    return written;
}

size_t st_detokenizer_finish(struct st_detokenizer *state, char *text) {
    return give_up(state, text);
}

void st_detokenizer_look_ahead(struct st_detokenizer *state,
                               const struct stint_tokenizer *tokenizer, const int32_t *ids,
                               size_t n_ids, uint32_t flags) {
    struct st_detokenizer ahead = {0};
    char text[CAPACITY], piece[ST_PIECE_MAX_BYTES];
    if (state->in_run || !is_byte(tokenizer, ids[0])) return;
    for (size_t i = 0; i < n_ids && !ahead.broken; i++) {
        if (is_skipped(tokenizer, ids[i], flags)) continue;
        if (is_byte(tokenizer, ids[i]))
            st_detokenizer_push(&ahead, tokenizer, ids[i], flags, text);
        else if (st_tokenizer_piece(tokenizer, ids[i], piece) > 0)
            break;
    }
    // What came before the run keeps its own pending bytes.
    if (state->n_pending == 0) {
        state->in_run = true;
        state->broken = ahead.broken || ahead.n_pending > 0;
    }
}
