// SPDX-License-Identifier: Apache-2.0
// What a tokenizer is made of: data that the readers fill in and tokenizer.c runs.
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

// A token that is looked for in the text before anything else happens to it.
struct st_added {
    char *text; // owned; normalized already where that is asked for
    size_t bytes;
    int32_t id;
    bool special;        // not looked for under STINT_TOKENIZE_PLAIN
    bool normalized;     // looked for after normalisation
    bool lstrip, rstrip; // takes the white space beside it along
    bool outside;        // no token of the model: only found here, never by a join
    bool single_word;    // only where no letter or digit is beside it
};

struct stint_tokenizer {
    struct st_vocab vocab;
    struct st_bpe bpe; // for a unigram model: what becomes of unknown characters
    bool is_unigram;
    struct st_unigram unigram;
    struct st_normalizer normalizers[ST_MAX_STEPS];
    size_t n_normalizers;
    struct st_pretokenizer pretokenizers[ST_MAX_STEPS];
    size_t n_pretokenizers;
    bool bytes_mapped;      // pre-tokenizers added from now on see bytes as ByteLevel writes them
    struct st_added *added; // sorted as byte strings
    size_t n_added, added_capacity;
    size_t first_added[257]; // of each first byte
    bool byte_level;         // tokens are bytes as they are
    bool metaspace;          // U+2581 is a space
    bool strip_first_space;  // of a text
    bool prefix_every_text;  // not the first alone begins with a space that is not the text's
    bool add_bos;
    int32_t bos, eos;
    char *chat_template;
};

stint_status st_tokenizer_new(size_t most_tokens, struct stint_tokenizer **tokenizer);
stint_status st_tokenizer_add_normalizer(struct stint_tokenizer *t, struct st_normalizer step);
stint_status st_tokenizer_add_pretokenizer(struct stint_tokenizer *t, struct st_pretokenizer step);
// Shorthands for the common steps.
stint_status st_tokenizer_add_split(struct stint_tokenizer *t, const char *pattern, size_t n,
                                    enum st_split behavior, bool invert);
stint_status st_tokenizer_add_replace(struct stint_tokenizer *t, const char *from, const char *to);
stint_status st_tokenizer_add_prepend(struct stint_tokenizer *t, const char *text, size_t n);
// Also puts the token into the vocabulary if it is not there. `added->text` is borrowed and copied,
// through the normalizers that the tokenizer has so far if it asks for that.
stint_status st_tokenizer_add_token(struct stint_tokenizer *t, const struct st_added *added);
// Sorts, normalizes the added tokens that ask for it, checks the rest. Once, at the end of a
// reader.
stint_status st_tokenizer_finish(struct stint_tokenizer *t);

// The pattern of GPT-2 (Radford et al. 2019), which ByteLevel implies.
extern const char st_gpt2_pattern[];

// Readers. `name` stands in error texts.
stint_status st_tokenizer_from_json(const char *name, const void *data, size_t bytes,
                                    struct stint_tokenizer **tokenizer);
stint_status st_tokenizer_from_vocab(const char *name, const struct st_map *vocab,
                                     const struct st_map *merges, const json_t *config,
                                     struct stint_tokenizer **tokenizer);
stint_status st_tokenizer_from_sentencepiece(const char *name, const void *data, size_t bytes,
                                             struct stint_tokenizer **tokenizer);
// tokenizer_config.json: special tokens, add_bos_token, the chat template. NULL is allowed.
stint_status st_tokenizer_apply_config(struct stint_tokenizer *t, const json_t *config);

// What GGUF's tokenizer.ggml.pre names.
struct st_gguf_splits {
    bool whole; // a piece that is a token is not split, and BOS is the default
    const char *names[8];
    const char *splits[7]; // the last one is NULL
};
// NULL if the name is not known.
const struct st_gguf_splits *st_gguf_pretokenizer(const char *name, size_t n);
// The names, for an error text.
void st_gguf_pretokenizer_names(char *text, size_t capacity);

#endif
