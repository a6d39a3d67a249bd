// SPDX-License-Identifier: Apache-2.0
// Drafts that steps with fewer bits make (draft/self.h), for the texts of a step that have no
// others. They write keys, values and states behind the text; the step that verifies them puts its
// own in their places.
#ifndef ST_GENERATE_SELF_DRAFTS_H
#define ST_GENERATE_SELF_DRAFTS_H

#include "generate/rows.h"

// What follows a text's newest token.
struct st_proposal {
    int32_t ids[STINT_MAX_STEP_ROWS];
    double chances[STINT_MAX_STEP_ROWS]; // that all up to this one are right
    float margins[STINT_MAX_STEP_ROWS];  // of self-drafts
    size_t n, n_selected;
    size_t max; // most that session, context, answer and precision allow
};

// The precision at which steps of `bits` draft; 0: none.
unsigned st_self_drafts_bits(const struct stint_session *s, unsigned bits);

// Drafts for those of rows->texts whose proposals [n_texts] have none selected, where that pays.
// Sets rows->drafting and the texts' `self`. logits: room for [n_texts, vocab]. Of
// st_session_step().
stint_status st_self_drafts_add(struct stint_session *s, struct st_rows *rows,
                                struct st_proposal *proposals, float *logits);
// Learns from what was picked: rows were computed and taken.
void st_self_drafts_learn(struct stint_session *s, const struct st_rows *rows);

#endif
