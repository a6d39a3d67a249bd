// SPDX-License-Identifier: Apache-2.0
// Bytes as tokenizer.json if they begin with '{', as GGUF metadata by its magic, else as a
// SentencePiece model; what opens must encode and decode.
#include "tokenizer/parts.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static stint_status open_gguf(const uint8_t *data, size_t size, struct stint_tokenizer **t) {
    struct st_map map = {data, size};
    struct st_gguf *gguf = NULL;
    ST_TRY(st_gguf_open("fuzz", &map, NULL, &gguf));
    stint_status status = st_tokenizer_from_gguf(gguf, t);
    st_gguf_close(gguf);
    return status;
}

static stint_status open_bytes(const uint8_t *data, size_t size, struct stint_tokenizer **t) {
    if (size && data[0] == '{') return st_tokenizer_from_json("fuzz", data, size, t);
    if (size > 4 && memcmp(data, "GGUF", 4) == 0) return open_gguf(data, size, t);
    return st_tokenizer_from_sentencepiece("fuzz", data, size, t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char text[] = "The 1st caf\xc3\xa9, \xf0\x9f\x98\x80 <s> \xff  end.";
    struct stint_tokenizer *t = NULL;
    if (open_bytes(data, size, &t) != STINT_OK) return 0;
    struct st_ids ids = {0};
    if (st_tokenizer_encode(t, text, sizeof text - 1, STINT_TOKENIZE_ADD_BOS, &ids) == STINT_OK) {
        struct st_detokenizer state = {0};
        char piece[ST_PIECE_MAX_BYTES + 8];
        for (size_t i = 0; i < ids.count; i++)
            st_detokenizer_push(&state, t, ids.data[i], STINT_DETOKENIZE_SPECIAL, piece);
        st_detokenizer_finish(&state, piece);
        size_t n_bytes = 0;
        stint_detokenize(t, ids.data, ids.count, 0, NULL, 0, &n_bytes);
    }
    st_ids_free(&ids);
    st_tokenizer_close(t);
    return 0;
}
