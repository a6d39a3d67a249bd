// SPDX-License-Identifier: Apache-2.0
// Steps that rewrite text before it is split. Tokenizer files define them; they run in order.
#ifndef ST_TOKENIZER_NORMALIZE_H
#define ST_TOKENIZER_NORMALIZE_H

#include "base/buffer.h"
#include "tokenizer/regex.h"

enum st_normalizer_kind {
    ST_NORMALIZE_PREPEND,       // puts `to` before a text that is not empty
    ST_NORMALIZE_REPLACE,       // replaces every `from` (or match of the regex) with `to`
    ST_NORMALIZE_UNICODE,       // a utf8proc form, see options
    ST_NORMALIZE_STRIP,         // removes white space at the ends
    ST_NORMALIZE_STRIP_ACCENTS, // removes combining marks
    ST_NORMALIZE_LOWERCASE,     // character by character
    ST_NORMALIZE_CHARSMAP,      // SentencePiece's compiled table, in `from`
    ST_NORMALIZE_SQUEEZE,       // SentencePiece: no spaces at the ends, single spaces inside
};

struct st_normalizer {
    enum st_normalizer_kind kind;
    char *from, *to; // owned
    size_t from_bytes, to_bytes;
    struct st_regex *regex;
    int options;      // UTF8PROC_*
    bool clusters;    // CHARSMAP: look up grapheme clusters, not the longest prefix
    bool left, right; // STRIP: which ends
};

void st_normalizer_close(struct st_normalizer *normalizer);
// STINT_E_FORMAT if a CHARSMAP's table is damaged. Checked once when a tokenizer is opened.
stint_status st_normalizer_check(const struct st_normalizer *normalizer);

// No Unicode form makes a text more than 11 times as long, and no mark for spaces more than 3
// times.
enum { ST_NORMALIZE_GROWTH = 64, ST_NORMALIZE_ROOM = 4096 };
// The bytes that steps may make of n_bytes.
size_t st_normalize_max(size_t n_bytes);

// Rewrites text in place. The text is valid UTF-8 before and after. STINT_E_LIMIT: it grows beyond
// st_normalize_max(), or its regular expressions take too much effort.
stint_status st_normalize(const struct st_normalizer *steps, size_t n_steps, struct st_bytes *text);

#endif
