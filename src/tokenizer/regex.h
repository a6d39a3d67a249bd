// SPDX-License-Identifier: Apache-2.0
// Regular expressions of tokenizers, by PCRE2 and its JIT compiler. A compiled expression may be
// used by several threads.
#ifndef ST_TOKENIZER_REGEX_H
#define ST_TOKENIZER_REGEX_H

#include "base/status.h"

#include <stdint.h>

struct st_regex;

// Compiles a pattern of a tokenizer file: Unicode everywhere, \s is Unicode's White_Space.
// STINT_E_UNSUPPORTED names the offset at which PCRE2 fails.
stint_status st_regex_open(const char *pattern, size_t n, struct st_regex **regex);
void st_regex_close(struct st_regex *regex); // accepts NULL

// The effort that the matches of one text may take together, in PCRE2's count of tries. A text of n
// bytes has room for the patterns of real tokenizers, which take less than 20 for each byte, and
// not for patterns that try the same bytes again and again.
struct st_effort {
    uint64_t left;
};
struct st_effort st_effort_of(size_t n_bytes);

// The first match in text[0, n), which is valid UTF-8, that begins at `from` or later, and where a
// character does: [*start, *end) with from <= *start <= *end <= n. *start is n if there is none.
// STINT_E_LIMIT: the effort exceeds that of any real text. STINT_E_FORMAT: \K in a group that a
// lookaround calls, which PCRE2 10.42 compiles, moved the match's start before `from` or past its
// end.
stint_status st_regex_find(const struct st_regex *regex, const char *text, size_t n, size_t from,
                           size_t *start, size_t *end);
// The same as one of several searches: takes its effort from *effort.
stint_status st_regex_find_next(const struct st_regex *regex, const char *text, size_t n,
                                size_t from, struct st_effort *effort, size_t *start, size_t *end);

#endif
