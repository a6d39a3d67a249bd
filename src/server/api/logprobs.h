// SPDX-License-Identifier: Apache-2.0
// The log-probabilities of an answer's tokens as OpenAI's clients read them.
#ifndef ST_SERVER_LOGPROBS_H
#define ST_SERVER_LOGPROBS_H

#include "generate/transcript.h"
#include "server/api/json_text.h"

// Of the piece's tokens [first, last): as chats have them, an object with "content", or as
// completions do, an object of arrays.
void st_logprobs_write(const struct st_transcript *transcript,
                       const struct stint_tokenizer *tokenizer, struct st_piece piece, bool chat,
                       struct st_json_text *out);

#endif
