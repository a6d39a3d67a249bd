// SPDX-License-Identifier: Apache-2.0
// Answers of gpt-oss (OpenAI's "harmony" format): messages of several channels, each with a header
// between special tokens. Their text is rewritten with the marks that everything else here reads:
//
//   <|channel|>analysis<|message|>...<|end|>                       <think>...</think>
//   <|channel|>final<|message|>...                                 ...
//   <|channel|>commentary to=functions.NAME ...<|message|>{...}    <tool_call>NAME{...}
//
// Text that no header stands before passes as it is. Reasoning after the first text is left out:
// an answer begins with all of its reasoning.
#ifndef ST_CHAT_HARMONY_H
#define ST_CHAT_HARMONY_H

#include <stdbool.h>
#include <stddef.h>

enum {
    ST_HARMONY_HEADER = 128,    // bytes of a header that count
    ST_HARMONY_ADDED = 16 + 128 // most bytes that one token adds to its text
};

struct st_harmony {
    enum { ST_HARMONY_TEXT, ST_HARMONY_IN_HEADER, ST_HARMONY_THINKS, ST_HARMONY_SILENT } part;
    bool told; // some text was made
    size_t n;
    char header[ST_HARMONY_HEADER + 1];
};

// Whether answers of a chat template are in this format.
bool st_harmony_is_spoken(const char *chat_template);

// One token's text [0, n), that of a special token too, rewritten to `to`, of n + ST_HARMONY_ADDED
// bytes. Returns the bytes written.
size_t st_harmony_push(struct st_harmony *harmony, const char *text, size_t n, char *to);

#endif
