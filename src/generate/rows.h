// SPDX-License-Identifier: Apache-2.0
// The rows of a decode step: of each text its newest token, and drafts of the tokens behind it
// where they pay (draft/draft.h). The caller picks tokens from the logits row by row, as if the
// rows were steps of their own: a row is good as long as it holds the token that was picked from
// the row before. So the picked tokens are those of steps without drafts, for every way of picking,
// and what was sampled has the model's own distribution: a draft is taken with its probability.
// Where no earlier text matches, fewer bits of the weights may draft (self_drafts.h).
#ifndef ST_GENERATE_ROWS_H
#define ST_GENERATE_ROWS_H

#include "generate/generator.h"
#include "session/precision/precision.h"
#include "session/session.h"

struct st_rows_text {
    // Set by the caller. The sequence holds all tokens but the newest.
    uint32_t sequence;
    int32_t newest;                       // the last token that the generator accepted
    const struct st_generator *generator; // of the answer
    const stint_precision *precision;
    // Set by st_rows_draft: its rows are [first, first + n).
    size_t first, n;
    bool self;      // fewer bits of the weights made its drafts, not an earlier text
    size_t n_taken; // drafts that were picked; changed by st_rows_take
};

struct st_rows {
    struct st_rows_text texts[STINT_MAX_STEP_ROWS];
    size_t n_texts;
    unsigned bits;                        // at which all newest tokens are computed
    struct st_generator_scratch *scratch; // of the texts' generators
    // Set by st_rows_draft.
    uint32_t sequences[STINT_MAX_STEP_ROWS];
    int32_t ids[STINT_MAX_STEP_ROWS];
    float margins[STINT_MAX_STEP_ROWS]; // of self-drafts
    size_t n;
    double seconds, drafting; // of the step; of those before it that drafted
};

// Moves texts of one precision, as many as a step may have, from the set `waits` (bit i: text i, at
// bits[i]) to `group`. Returns their number. pre: waits is not empty
size_t st_rows_group(const struct stint_session *s, const unsigned *bits, uint64_t *waits,
                     uint32_t group[STINT_MAX_STEP_ROWS]);

// Lays out rows->texts [n_texts]. May overwrite logits [n_texts, vocab]. As st_session_step(); the
// sequences are as before.
stint_status st_rows_draft(struct stint_session *s, struct st_rows *rows, float *logits);
// Computes logits [rows->n, vocab]. The sequences hold the newest tokens then, without drafts. As
// st_session_step().
stint_status st_rows_step(struct stint_session *s, struct st_rows *rows, float *logits);
// A token was picked from the text's last good row. True: it is the next row's, which is good now;
// the sequence holds it. False: the row is the text's last good one.
bool st_rows_take(struct stint_session *s, struct st_rows *rows, size_t text, int32_t id);
// All tokens were picked: learns what the drafts gained.
void st_rows_end(struct stint_session *s, const struct st_rows *rows);

#endif
