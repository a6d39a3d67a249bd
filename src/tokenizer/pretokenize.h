// SPDX-License-Identifier: Apache-2.0
// Splits normalized text into the pieces that the model encodes one by one; steps run in order,
// each over the pieces that the one before left.
#ifndef ST_TOKENIZER_PRETOKENIZE_H
#define ST_TOKENIZER_PRETOKENIZE_H

#include "base/buffer.h"
#include "tokenizer/regex.h"

enum st_pretokenizer_kind {
    ST_PRETOKENIZE_SPLIT,
    ST_PRETOKENIZE_PREFIX,
    ST_PRETOKENIZE_METASPACE,
    ST_PRETOKENIZE_MAP_BYTES,   // replaces every byte by the character that byte-level files write
                                // for it
    ST_PRETOKENIZE_UNMAP_BYTES, // the reverse
};

// What happens to a match.
enum st_split {
    ST_SPLIT_ISOLATED,
    ST_SPLIT_REMOVED,
    ST_SPLIT_MERGED_WITH_PREVIOUS,
    ST_SPLIT_MERGED_WITH_NEXT,
    ST_SPLIT_CONTIGUOUS, // one piece with the matches next to it
};

enum st_prefix { ST_PREFIX_NEVER, ST_PREFIX_FIRST, ST_PREFIX_ALWAYS };

struct st_pretokenizer {
    enum st_pretokenizer_kind kind;
    struct st_regex *regex; // SPLIT
    enum st_split behavior; // SPLIT
    bool invert;            // SPLIT: the gaps count as the matches
    enum st_prefix prefix;  // PREFIX (a space), METASPACE (U+2581, which also replaces every space)
};

void st_pretokenizer_close(struct st_pretokenizer *pretokenizer);

struct st_span {
    size_t start, end;
};

// Text and its pieces, in order. Zero-initialise.
struct st_pieces {
    struct st_bytes text;
    struct st_span *spans;
    size_t count, capacity;
};
void st_pieces_free(struct st_pieces *pieces);

// Takes over `text` and splits it. `first`: the text begins the whole input.
stint_status st_pretokenize(const struct st_pretokenizer *steps, size_t n_steps, bool first,
                            struct st_bytes *text, struct st_pieces *pieces);

#endif
