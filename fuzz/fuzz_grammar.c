// SPDX-License-Identifier: Apache-2.0
// Bytes up to the first NUL as a grammar, the rest as text: it is refused with a sentence, or each
// byte of the text is taken or refused, and no state is stuck.
#include "constraint/run.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_state(struct st_constraint_state *s) {
    bool open = st_constraint_complete(s);
    for (int b = 0; b < 256 && !open; b++)
        open = st_constraint_step(s, 0, s->n_threads, (unsigned char)b, s->n_threads) > 0;
    if (!open) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct st_constraint *c = NULL;
    struct st_constraint_state *s = NULL;
    size_t n = size ? strnlen((const char *)data, size) : 0;
    char *grammar = malloc(n + 1);
    if (!grammar) abort();
    if (n > 0) memcpy(grammar, data, n);
    grammar[n] = 0;
    if (st_constraint_grammar(grammar, &c) == STINT_OK) {
        if (st_constraint_begin(c, &s) != STINT_OK) abort();
        for (size_t i = n + 1; i < size && i < n + 200; i++) {
            st_constraint_push(s, (const char *)&data[i], 1);
            check_state(s);
        }
        st_constraint_end(s);
        st_constraint_free(c);
    } else if (st_error_text()[0] == 0) {
        abort();
    }
    free(grammar);
    return 0;
}
