// SPDX-License-Identifier: Apache-2.0
// What the callback of an answer hears: its text as it becomes certain, by kinds.
#ifndef ST_GENERATE_TELLER_H
#define ST_GENERATE_TELLER_H

#include "generate/options.h"
#include "generate/transcript.h"

// Zero-initialise except for the members set by the caller; free with st_transcript_free.
struct st_teller {
    // Set by the caller, borrowed.
    const stint_generation *generation;
    const struct st_tools *tools;
    const struct st_chat *chat; // or NULL
    uint32_t answer;            // its number

    struct st_transcript transcript; // of answers whose text has parts
    bool stopped;                    // by the callback
};

// A token that was accepted, with what became certain. STINT_E_NOMEM.
stint_status st_teller_token(struct st_teller *teller, const struct st_token *token,
                             const struct st_generated *generated);
// The end of the answer: the text that was held back, and the calls in it. STINT_E_NOMEM.
stint_status st_teller_end(struct st_teller *teller, const char *text, size_t n_bytes,
                           stint_stop_reason reason);

#endif
