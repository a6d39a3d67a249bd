// SPDX-License-Identifier: Apache-2.0
// A suffix automaton of a text of token ids, built as the text grows (Blumer et al. 1985, "The
// smallest automaton recognizing the subwords of a text"): knows where the longest end of the text
// that also occurs earlier did so last. A token costs constant time on average; the states on the
// path that is walked to note an occurrence are at most ST_SUFFIX_WALK.
#ifndef ST_DRAFT_SUFFIX_H
#define ST_DRAFT_SUFFIX_H

#include "base/arena.h"

enum { ST_SUFFIX_WALK = 64 };

struct st_suffix_state {
    int32_t length; // of its longest string
    int32_t link;   // the state of the longest suffix that occurs elsewhere too; -1: the root's
    int32_t end;    // an occurrence of its strings ends there, the last one that was noted
    int32_t edges;  // the first of its transitions; -1: none
};

struct st_suffix_edge {
    int32_t from, token, to;
    int32_t next; // of the same state; -1: none
};

struct st_suffix {
    int32_t *text; // [n], room for [capacity]
    size_t n, capacity;
    struct st_suffix_state *states; // [2 * capacity + 1]
    struct st_suffix_edge *edges;   // [3 * capacity + 1]
    int32_t *table;                 // [n_table] hash table: edge + 1, 0: empty
    size_t n_states, n_edges, n_table;
    int32_t last; // the state of the whole text
    int32_t match_length, match_end;
};

// Room for texts of `capacity` tokens, at most 2^28. An automaton of zeroed memory is empty.
void st_suffix_lay_out(struct st_suffix *suffix, size_t capacity, struct st_arena *arena);
void st_suffix_clear(struct st_suffix *suffix);
// pre: n < capacity.
void st_suffix_push(struct st_suffix *suffix, int32_t token);

// text[end - length, end) is the same as the last `length` tokens, end < n; no longer end of the
// text occurs before. Of several occurrences it is the last one, if its states were within the
// walk. 0: the last token is new.
static inline size_t st_suffix_match(const struct st_suffix *suffix, size_t *end) {
    *end = (size_t)suffix->match_end;
    return (size_t)suffix->match_length;
}

#endif
