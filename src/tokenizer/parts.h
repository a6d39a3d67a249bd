// SPDX-License-Identifier: Apache-2.0
// The parts of a tokenizer: data that the readers fill in and tokenizer.c runs.
#ifndef ST_TOKENIZER_PARTS_H
#define ST_TOKENIZER_PARTS_H

#include "tokenizer/bpe.h"
#include "tokenizer/normalize.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/unigram.h"
#include "tokenizer/vocab.h"

#include "base/json.h"
#include "base/map.h"

enum { ST_MAX_STEPS = 16 };

// A token that is searched for in the text before all other steps.
struct st_added {
    char *text; // owned; already normalized if `normalized` is set
    size_t bytes;
    int32_t id;
    bool special;        // not searched for under STINT_TOKENIZE_PLAIN
    bool normalized;     // searched for after normalisation
    bool lstrip, rstrip; // also consumes the white space beside it
    bool outside;        // the model does not know it: found only by this search, never by a join
    bool single_word;    // matches only if no letter or digit is beside it
};

struct stint_tokenizer {
    struct st_vocab vocab;
    struct st_bpe bpe; // a unigram model uses its rules for unknown characters
    bool is_unigram;
    struct st_unigram unigram;
    struct st_normalizer normalizers[ST_MAX_STEPS];
    size_t n_normalizers;
    struct st_pretokenizer pretokenizers[ST_MAX_STEPS];
    size_t n_pretokenizers;
    bool bytes_mapped;      // pre-tokenizers added from here on see bytes as ByteLevel writes them
    struct st_added *added; // sorted as byte strings
    size_t n_added, added_capacity;
    size_t first_added[257]; // of each first byte
    bool byte_level;         // tokens are raw bytes
    bool metaspace;          // U+2581 is a space
    bool strip_first_space;  // at the start of a text
    bool add_bos;
    int32_t bos, eos;
    int32_t end; // of a text that is embedded; -1: none
    char *chat_template;
};

stint_status st_tokenizer_new(size_t max_tokens, struct stint_tokenizer **tokenizer);
stint_status st_tokenizer_add_normalizer(struct stint_tokenizer *t, struct st_normalizer step);
stint_status st_tokenizer_add_pretokenizer(struct stint_tokenizer *t, struct st_pretokenizer step);
// Shorthands for common steps.
stint_status st_tokenizer_add_split(struct stint_tokenizer *t, const char *pattern, size_t n,
                                    enum st_split behavior, bool invert);
stint_status st_tokenizer_add_replace(struct stint_tokenizer *t, const char *from, const char *to);
stint_status st_tokenizer_add_nfc(struct stint_tokenizer *t);
stint_status st_tokenizer_add_prepend(struct stint_tokenizer *t, const char *text, size_t n);
// Also adds the token to the vocabulary if it is missing there. `added->text` is borrowed and
// copied; with added->normalized the copy goes through the normalizers added so far.
stint_status st_tokenizer_add_token(struct stint_tokenizer *t, const struct st_added *added);
// Sorts the added tokens, normalizes those with `normalized`, and checks the rest. A reader calls
// it once, at its end.
stint_status st_tokenizer_finish(struct stint_tokenizer *t);

// The pattern of GPT-2 (Radford et al. 2019), which ByteLevel implies.
extern const char st_gpt2_pattern[];

// Readers. Error texts contain `name`.
stint_status st_tokenizer_from_json(const char *name, const void *data, size_t bytes,
                                    struct stint_tokenizer **tokenizer);
stint_status st_tokenizer_from_vocab(const char *name, const struct st_map *vocab,
                                     const struct st_map *merges, const json_t *config,
                                     struct stint_tokenizer **tokenizer);
stint_status st_tokenizer_from_sentencepiece(const char *name, const void *data, size_t bytes,
                                             struct stint_tokenizer **tokenizer);
// tokenizer_config.json: special tokens, add_bos_token, the chat template. NULL is allowed.
stint_status st_tokenizer_apply_config(struct stint_tokenizer *t, const json_t *config);

// The steps that GGUF's tokenizer.ggml.pre names.
struct st_gguf_family {
    const char *names[8];
    bool nfc;              // normalizes to NFC
    bool whole;            // a piece that is a token is not split, and BOS is the default
    const char *splits[7]; // the last one is NULL
};
// In place of a split: the splits after it see bytes as ByteLevel writes them.
#define ST_GGUF_MAP_BYTES ""
// NULL if the name is not known.
const struct st_gguf_family *st_gguf_family(const char *name, size_t n);
// All known names, for an error text.
void st_gguf_family_names(char *text, size_t capacity);

#endif
