// SPDX-License-Identifier: Apache-2.0
// Bytes up to the first NUL as a JSON schema, the rest as text: pushed at once and byte by byte it
// must stand at the same place, and a refusal changes nothing. Then the shortest-looking way to an
// end is taken: the text may never be stuck, and the end is JSON.
#include "constraint/run.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS_MAX = 400, TEXT_MAX = 4096 };

struct text {
    char bytes[TEXT_MAX];
    size_t n;
};

static bool push(struct st_constraint_state *state, struct text *text, char byte) {
    size_t n_threads = state->n_threads;
    struct st_thread first = state->threads[0];
    if (text->n == TEXT_MAX) return false;
    if (!st_constraint_push(state, &byte, 1)) {
        if (n_threads != state->n_threads || memcmp(&first, state->threads, sizeof first)) abort();
        return false;
    }
    text->bytes[text->n++] = byte;
    return true;
}

static void finish(struct st_constraint_state *state, struct text *text) {
    static const char likely[] = "\"}],:0123456789nulltrue";
    for (size_t step = 0; step < STEPS_MAX && !st_constraint_complete(state); step++) {
        bool found = false;
        for (size_t i = 0; i < sizeof likely - 1 && !found; i++)
            found = push(state, text, likely[(i + (step & 3)) % (sizeof likely - 1)]);
        for (int b = 0; b < 256 && !found; b++) found = push(state, text, (char)b);
        if (!found && text->n < TEXT_MAX) abort(); // stuck
    }
    if (!st_constraint_complete(state)) return;
    json_t *json = json_loadb(text->bytes, text->n, JSON_DECODE_ANY, NULL);
    if (!json) abort();
    json_decref(json);
}

static void run(const struct st_constraint *c, const char *input, size_t n) {
    struct st_constraint_state *one = NULL, *other = NULL;
    struct text *text = calloc(1, sizeof *text);
    if (!text || st_constraint_begin(c, &one) || st_constraint_begin(c, &other)) abort();
    for (size_t i = 0; i < n; i++) push(one, text, input[i]);
    if (!st_constraint_push(other, text->bytes, text->n)) abort();
    if (st_constraint_complete(one) != st_constraint_complete(other)) abort();
    finish(one, text);
    st_constraint_end(one);
    st_constraint_end(other);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *bytes = (const char *)data;
    size_t n = size ? strnlen(bytes, size) : 0;
    json_t *schema = json_loadb(size ? bytes : "", n, JSON_DECODE_ANY, NULL);
    struct st_constraint *c = NULL;
    if (!schema) return 0;
    if (st_constraint_schema(schema, &c) == STINT_OK)
        run(c, bytes + n + (n < size), size - n - (n < size));
    st_constraint_free(c);
    json_decref(schema);
    return 0;
}
