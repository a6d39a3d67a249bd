// SPDX-License-Identifier: Apache-2.0
// The built-in chat formats, one table row each. The text of the checkpoint's template tells which
// one to use.
#ifndef ST_CHAT_FORMATS_H
#define ST_CHAT_FORMATS_H

#include "tokenizer/tokenizer.h"

struct st_chat_format; // a row: chatml, llama-2, llama-3, mistral, gemma, phi-3, zephyr, raw

// Recognises a format by marks in the template's text; `raw` (messages joined by newlines) for NULL
// or an unknown template.
const struct st_chat_format *st_chat_recognise(const char *chat_template);
const char *st_chat_name(const struct st_chat_format *format);

// Renders the messages and the opening of the assistant's turn, including the text of BOS if the
// format has it. STINT_E_ARG: an unknown role, or a system message that the format neither has nor
// can fold into the first user turn. *text is malloc'ed and terminated.
stint_status st_chat_render(const struct st_chat_format *format,
                            const struct stint_tokenizer *tokenizer, const stint_message *messages,
                            size_t n_messages, char **text);

// The text that ends the assistant's turn in this format (e.g. "<|im_end|>"). Its token stops
// generation, as EOS does; NULL if only EOS does.
const char *st_chat_turn_end(const struct st_chat_format *format);

#endif
