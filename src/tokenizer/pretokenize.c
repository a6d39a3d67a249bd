// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/pretokenize.h"

#include "base/size.h"
#include "base/utf8.h"
#include "tokenizer/vocab.h"

#include <stdlib.h>
#include <string.h>

static const char metaspace[] = "\xe2\x96\x81"; // U+2581
enum { METASPACE_BYTES = 3 };

void st_pretokenizer_close(struct st_pretokenizer *pretokenizer) {
    st_regex_close(pretokenizer->regex);
    *pretokenizer = (struct st_pretokenizer){0};
}

void st_pieces_free(struct st_pieces *pieces) {
    st_bytes_free(&pieces->text);
    free(pieces->spans);
    *pieces = (struct st_pieces){0};
}

static stint_status add_span(struct st_pieces *pieces, size_t start, size_t end) {
    if (start == end) return STINT_OK;
    ST_TRY(st_grow((void **)&pieces->spans, &pieces->capacity, pieces->count, 1,
                   sizeof *pieces->spans));
    pieces->spans[pieces->count++] = (struct st_span){start, end};
    return STINT_OK;
}

// The state while one piece is split: segments come in order, matches and gaps alternate.
struct splitter {
    struct st_pieces *out;
    enum st_split behavior;
    size_t first;      // span of this piece in out
    bool last_matched; // the segment before
    size_t held;       // MERGED_WITH_NEXT: start of a match that waits for the next gap
    bool holding;
};

static stint_status segment(struct splitter *s, size_t start, size_t end, bool match) {
    if (start == end) return STINT_OK;
    struct st_span *last = s->out->count > s->first ? &s->out->spans[s->out->count - 1] : NULL;
    bool extends = false;
    switch (s->behavior) {
    case ST_SPLIT_ISOLATED:
        break;
    case ST_SPLIT_REMOVED:
        if (match) return STINT_OK;
        break;
    case ST_SPLIT_MERGED_WITH_PREVIOUS:
        extends = last && match && !s->last_matched;
        break;
    case ST_SPLIT_CONTIGUOUS:
        extends = last && match == s->last_matched;
        break;
    case ST_SPLIT_MERGED_WITH_NEXT:
        if (match) { // of several in a row only the last one is followed by a gap
            if (s->holding) ST_TRY(add_span(s->out, s->held, start));
            s->holding = true;
            s->held = start;
            return STINT_OK;
        }
        if (s->holding) start = s->held;
        s->holding = false;
        break;
    }
    s->last_matched = match;
    if (!extends) return add_span(s->out, start, end);
    last->end = end;
    return STINT_OK;
}

static stint_status split_piece(const struct st_pretokenizer *step, const char *text,
                                struct st_span piece, struct st_effort *effort,
                                struct splitter *s) {
    const char *subject = text + piece.start;
    size_t n = piece.end - piece.start, done = 0;
    for (size_t at = 0; at < n;) {
        size_t start, end;
        ST_TRY(st_regex_find_next(step->regex, subject, n, at, effort, &start, &end));
        if (start < n && end == start) { // an empty match
            at = start + st_max(1, st_utf8_length(subject + start, n - start));
            continue;
        }
        ST_TRY(segment(s, piece.start + done, piece.start + start, step->invert));
        ST_TRY(segment(s, piece.start + start, piece.start + end, !step->invert));
        at = done = end;
    }
    ST_TRY(segment(s, piece.start + done, piece.end, step->invert));
    return s->holding ? add_span(s->out, s->held, piece.end) : STINT_OK;
}

static stint_status split(const struct st_pretokenizer *step, const struct st_pieces *in,
                          struct st_effort *effort, struct st_pieces *out) {
    for (size_t i = 0; i < in->count; i++) {
        struct splitter s = {.out = out, .behavior = step->behavior, .first = out->count};
        ST_TRY(split_piece(step, in->text.data, in->spans[i], effort, &s));
    }
    return STINT_OK;
}

static bool wants_prefix(const struct st_pretokenizer *step, bool first, const char *text, size_t n,
                         const char *prefix, size_t n_prefix) {
    if (step->prefix == ST_PREFIX_NEVER || (step->prefix == ST_PREFIX_FIRST && !first))
        return false;
    return n < n_prefix || memcmp(text, prefix, n_prefix) != 0;
}

static stint_status add_marked(const struct st_pretokenizer *step, bool first, const char *text,
                               size_t n, struct st_bytes *out) {
    bool meta = step->kind == ST_PRETOKENIZE_METASPACE;
    const char *prefix = meta ? metaspace : " ";
    size_t n_prefix = meta ? METASPACE_BYTES : 1;
    bool spaced = meta && n && text[0] == ' '; // the space becomes the mark
    if (!spaced && wants_prefix(step, first, text, n, prefix, n_prefix))
        ST_TRY(st_bytes_append(out, prefix, n_prefix));
    for (size_t j = 0; j < n; j++)
        if (meta && text[j] == ' ')
            ST_TRY(st_bytes_append(out, metaspace, METASPACE_BYTES));
        else
            ST_TRY(st_bytes_append(out, text + j, 1));
    return STINT_OK;
}

static stint_status map_bytes(const char *text, size_t n, struct st_bytes *out) {
    char character[2];
    for (size_t i = 0; i < n; i++)
        ST_TRY(st_bytes_append(out, character,
                               st_byte_level_encode((unsigned char)text[i], character)));
    return STINT_OK;
}

// A prefix that does not stand for a byte stays as it is.
static stint_status unmap_bytes(const char *text, size_t n, struct st_bytes *out) {
    for (size_t i = 0, bytes; i < n; i += bytes) {
        char byte;
        size_t n_byte;
        bytes = st_max(1, st_utf8_length(text + i, n - i));
        bool known = st_byte_level_decode(text + i, bytes, &byte, &n_byte);
        ST_TRY(st_bytes_append(out, known ? &byte : text + i, known ? 1 : bytes));
    }
    return STINT_OK;
}

// Steps that change the text itself.
static stint_status edit(const struct st_pretokenizer *step, bool first, const struct st_pieces *in,
                         struct st_pieces *out) {
    for (size_t i = 0; i < in->count; i++) {
        const char *text = in->text.data + in->spans[i].start;
        size_t n = in->spans[i].end - in->spans[i].start, start = out->text.count;
        if (step->kind == ST_PRETOKENIZE_MAP_BYTES)
            ST_TRY(map_bytes(text, n, &out->text));
        else if (step->kind == ST_PRETOKENIZE_UNMAP_BYTES)
            ST_TRY(unmap_bytes(text, n, &out->text));
        else
            ST_TRY(add_marked(step, first && i == 0, text, n, &out->text));
        ST_TRY(add_span(out, start, out->text.count));
    }
    return STINT_OK;
}

stint_status st_pretokenize(const struct st_pretokenizer *steps, size_t n_steps, bool first,
                            struct st_bytes *text, struct st_pieces *pieces) {
    stint_status status = STINT_OK;
    struct st_effort effort = st_effort_of(text->count);
    pieces->text = *text;
    *text = (struct st_bytes){0};
    pieces->count = 0;
    status = add_span(pieces, 0, pieces->text.count);
    for (size_t i = 0; status == STINT_OK && i < n_steps; i++) {
        struct st_pieces out = {0};
        bool splits = steps[i].kind == ST_PRETOKENIZE_SPLIT;
        status =
            splits ? split(&steps[i], pieces, &effort, &out) : edit(&steps[i], first, pieces, &out);
        if (splits) { // the text does not change
            out.text = pieces->text;
            pieces->text = (struct st_bytes){0};
        }
        st_pieces_free(pieces);
        *pieces = out;
    }
    return status;
}
