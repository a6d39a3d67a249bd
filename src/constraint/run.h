// SPDX-License-Identifier: Apache-2.0
// Running a constraint. The state of a text is a set of threads, each an address in the code, a
// count and a frame. Frames are calls that have not returned; they form a tree and never change, so
// threads share them. A set follows its predecessor in a pool, so going back costs nothing.
#ifndef ST_CONSTRAINT_RUN_H
#define ST_CONSTRAINT_RUN_H

#include "constraint/code.h"
#include "constraint/constraint.h"

enum {
    ST_FRAMES_MAX = 8192,
    ST_THREADS_MAX = 16384, // threads of all sets in the pool
    ST_VISITS_MAX = 4096,   // addresses that one byte may lead to
    ST_VISIT_SLOTS = 2 * ST_VISITS_MAX,
    ST_SEEN_MAX = 256,
    ST_SEEN_THREADS = 8,
    ST_SEEN_SLOTS = 2 * ST_SEEN_MAX,
};

struct st_frame {
    uint32_t parent; // has a lower index; frame 0 has none
    uint32_t back;   // where to return
    uint32_t count;  // the caller's
    uint32_t depth;
};

struct st_thread {
    uint32_t place, count, frame;
};

struct st_visit {
    struct st_thread thread;
    uint32_t step;
};

// A cache for one mask. Most tokens go through the same few sets of threads, above all those of a
// string or of a pattern's loop. Each set is advanced by each byte only once.
struct st_seen {
    size_t n_sets, n_frames;
    int16_t slots[ST_SEEN_SLOTS]; // sets by their threads; -1 is empty
    uint8_t n_threads[ST_SEEN_MAX];
    struct st_thread threads[ST_SEEN_MAX][ST_SEEN_THREADS];
    int16_t next[ST_SEEN_MAX][256]; // a set, REFUSED or UNKNOWN
};

struct st_constraint_state {
    const struct st_constraint *constraint;
    size_t n_threads, n_frames;
    uint32_t step; // of visits
    size_t n_visits;
    struct st_thread threads[ST_THREADS_MAX]; // the first n_threads are the state of the text
    struct st_frame frames[ST_FRAMES_MAX];
    uint32_t moved[ST_FRAMES_MAX];
    struct st_visit visits[ST_VISIT_SLOTS]; // addresses visited in this step: open addressing
    struct st_seen seen;
    struct st_thread work[ST_VISITS_MAX + 8]; // threads that are still to be followed
};

// Advances threads[first, first + n) by `byte`, writes the result to threads[to...) and returns its
// size; 0: the byte is not allowed. New frames are added. pre: first + n <= to.
size_t st_constraint_step(struct st_constraint_state *state, size_t first, size_t n,
                          unsigned char byte, size_t to);

#endif
