// SPDX-License-Identifier: Apache-2.0
// The built-in chat formats, one table row each, recognised from the checkpoint's own template
// text.
#ifndef ST_CHAT_FORMATS_H
#define ST_CHAT_FORMATS_H

#include "tokenizer/tokenizer.h"

struct st_chat_format; // a row: chatml, llama-2, llama-3, mistral, gemma, phi-3, zephyr, raw

// By marks in the template's text; `raw` (messages joined by newlines) for NULL or an unknown one.
const struct st_chat_format *st_chat_recognise(const char *chat_template);
const char *st_chat_name(const struct st_chat_format *format);

// Renders the messages and the opening of the assistant's turn, BOS text included where the format
// has it. An unknown role, or a system message where the format has none and cannot fold it into
// the first user turn: STINT_E_ARG. *text is malloc'ed and terminated.
stint_status st_chat_render(const struct st_chat_format *format,
                            const struct stint_tokenizer *tokenizer, const stint_message *messages,
                            size_t n_messages, char **text);

// Text that ends the assistant's turn in this format (e.g. "<|im_end|>"), whose token stops
// generation beside EOS; NULL if EOS alone does.
const char *st_chat_turn_end(const struct st_chat_format *format);

#endif
