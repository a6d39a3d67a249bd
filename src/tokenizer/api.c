// SPDX-License-Identifier: Apache-2.0
// The public functions.
#include "base/buffer.h"
#include "tokenizer/tokenizer.h"

#include <string.h>

stint_status stint_tokenizer_open(const char *path, stint_tokenizer **tokenizer) {
    if (!path || !tokenizer) return st_fail(STINT_E_ARG, "path and tokenizer may not be NULL");
    return st_tokenizer_open(path, tokenizer);
}

void stint_tokenizer_close(stint_tokenizer *tokenizer) {
    st_tokenizer_close(tokenizer);
}

stint_status stint_tokenize(const stint_tokenizer *tokenizer, const char *text, size_t n_bytes,
                            uint32_t flags, int32_t *ids, size_t capacity, size_t *n_ids) {
    if (!tokenizer || (!text && n_bytes) || !n_ids || (!ids && capacity))
        return st_fail(STINT_E_ARG, "tokenizer, text, ids and n_ids may not be NULL");
    struct st_ids found = {0};
    stint_status status = st_tokenizer_encode(tokenizer, text, n_bytes, flags, &found);
    if (status == STINT_OK) {
        *n_ids = found.count;
        if (found.count > capacity && ids)
            status = st_fail(STINT_E_LIMIT, "the text has %zu tokens, but the buffer holds %zu",
                             found.count, capacity);
        else if (ids && found.count)
            memcpy(ids, found.data, found.count * sizeof *ids);
    }
    st_ids_free(&found);
    return status;
}

stint_status stint_detokenize(const stint_tokenizer *tokenizer, const int32_t *ids, size_t n_ids,
                              uint32_t flags, char *text, size_t capacity, size_t *n_bytes) {
    if (!tokenizer || (!ids && n_ids) || !n_bytes || (!text && capacity))
        return st_fail(STINT_E_ARG, "tokenizer, ids, text and n_bytes may not be NULL");
    struct st_detokenizer state = {0};
    char piece[ST_PIECE_MAX_BYTES + 8];
    size_t total = 0;
    for (size_t i = 0; i <= n_ids; i++) {
        if (i < n_ids) st_detokenizer_look_ahead(&state, tokenizer, ids + i, n_ids - i, flags);
        size_t n = i < n_ids ? st_detokenizer_push(&state, tokenizer, ids[i], flags, piece)
                             : st_detokenizer_finish(&state, piece);
        if (total + n < capacity) memcpy(text + total, piece, n);
        total += n;
    }
    *n_bytes = total;
    if (total < capacity) text[total] = 0;
    if (text && total >= capacity)
        return st_fail(STINT_E_LIMIT, "the text has %zu bytes, but the buffer holds %zu", total,
                       capacity ? capacity - 1 : 0);
    return STINT_OK;
}

size_t stint_tokenizer_vocab(const stint_tokenizer *tokenizer) {
    return st_tokenizer_vocab(tokenizer);
}
int32_t stint_tokenizer_bos(const stint_tokenizer *tokenizer) {
    return st_tokenizer_bos(tokenizer);
}
int32_t stint_tokenizer_eos(const stint_tokenizer *tokenizer) {
    return st_tokenizer_eos(tokenizer);
}
