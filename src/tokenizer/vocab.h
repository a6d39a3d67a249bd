// SPDX-License-Identifier: Apache-2.0
// Tokens: id to bytes and back. Byte-level vocabularies hold the bytes themselves, not the
// printable characters that files write for them (GPT-2, Radford et al. 2019). Ids may have gaps.
#ifndef ST_TOKENIZER_VOCAB_H
#define ST_TOKENIZER_VOCAB_H

#include "base/status.h"

#include <stdbool.h>

enum st_token_kind {
    ST_TOKEN_NONE, // a gap
    ST_TOKEN_NORMAL,
    ST_TOKEN_UNKNOWN,
    ST_TOKEN_CONTROL, // special: not part of the text
    ST_TOKEN_ADDED,   // searched for as a whole, and part of the text
    ST_TOKEN_UNUSED,
    ST_TOKEN_BYTE, // <0xNN>
};

struct st_token {
    size_t start; // in the pool
    uint32_t bytes;
    uint8_t kind;
    uint8_t byte; // ST_TOKEN_BYTE
    bool outside; // an added token that the model does not know
    bool added;   // searched for in the text before the model sees it
};

struct st_vocab {
    char *pool;
    size_t pool_bytes, pool_capacity;
    struct st_token *tokens; // [n]
    double *scores;          // [n], of SentencePiece; NULL: all are 0
    size_t n, capacity;
    int32_t *slots;     // open addressing; -1 is empty
    size_t n_slots;     // a power of two
    uint64_t seed;      // of the hash: a file cannot choose texts that collide
    int32_t bytes[256]; // token of a single byte: ST_TOKEN_BYTE ones, or those of byte-level text;
                        // -1: none
    size_t longest;     // bytes
};

// `max` bounds the ids: no file can have more tokens than it has bytes.
stint_status st_vocab_open(struct st_vocab *vocab, size_t max);
void st_vocab_close(struct st_vocab *vocab);

// STINT_E_FORMAT: id out of bounds or taken, text empty or longer than ST_PIECE_MAX_BYTES, score
// not a number. If two tokens have the same text, the text finds the first.
stint_status st_vocab_add(struct st_vocab *vocab, int64_t id, const char *text, size_t n,
                          enum st_token_kind kind, double score);
// -1 if there is none.
int32_t st_vocab_find(const struct st_vocab *vocab, const char *text, size_t n);
// The same, limited to tokens that the model knows.
int32_t st_vocab_find_model(const struct st_vocab *vocab, const char *text, size_t n);

// The hash of a text, computed step by step: start from vocab->seed and add bytes.
uint64_t st_vocab_hash(uint64_t hash, const char *text, size_t n);
// Like st_vocab_find_model; pre: `hash` is the hash of text[0, n).
int32_t st_vocab_find_hashed(const struct st_vocab *vocab, uint64_t hash, const char *text,
                             size_t n);
// The id's bytes; NULL for a gap or an id outside.
const char *st_vocab_text(const struct st_vocab *vocab, int32_t id, size_t *n);
enum st_token_kind st_vocab_kind(const struct st_vocab *vocab, int32_t id);
double st_vocab_score(const struct st_vocab *vocab, int32_t id); // pre: an id below n

// Marks tokens of the form <0xNN> as bytes and fills bytes[]. Similar
// tokens (<0x-1>, <0xZZ>) are text.
void st_vocab_mark_bytes(struct st_vocab *vocab);
// Fills bytes[] with the tokens of one byte (byte-level text).
void st_vocab_single_bytes(struct st_vocab *vocab);

// Byte-level files write each byte as a character. Translates such text to bytes in out (capacity
// n); false if a character does not stand for a byte.
bool st_byte_level_decode(const char *text, size_t n, char *out, size_t *n_out);

// The character that files write for a byte, as UTF-8; returns its bytes, 1 or 2.
size_t st_byte_level_encode(unsigned char byte, char out[2]);

#endif
