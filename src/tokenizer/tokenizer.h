// SPDX-License-Identifier: Apache-2.0
// Text to token ids and back, for vocabularies of any file format. A tokenizer is immutable and
// shared by threads.
//
// Encoding runs: split at added tokens -> normalize -> pre-tokenize -> model (BPE or unigram) ->
// post-process. Each step is data read from the file; see docs/ARCHITECTURE.md.
#ifndef ST_TOKENIZER_TOKENIZER_H
#define ST_TOKENIZER_TOKENIZER_H

#include "base/buffer.h"
#include "base/status.h"
#include "format/files.h"
#include "format/gguf.h"

struct stint_tokenizer; // the public handle is this struct

// A folder (tokenizer.json, else vocab.json + merges.txt, else tokenizer.model;
// tokenizer_config.json is read for special tokens, add_bos_token and the chat template), or one of
// these files, or a .gguf, or a package. STINT_E_IO if there is none (the text lists the files
// that were tried), E_FORMAT, E_UNSUPPORTED.
stint_status st_tokenizer_open(const char *path, struct stint_tokenizer **tokenizer);
stint_status st_tokenizer_from_files(const struct st_files *files,
                                     struct stint_tokenizer **tokenizer);
bool st_tokenizer_is_there(
    const struct st_files *files); // true if there is a vocabulary, readable or not
// From tokenizer.ggml.* of an open GGUF. STINT_E_IO if it has no vocabulary ("no_vocab" or no
// key): the caller may continue without one.
stint_status st_tokenizer_from_gguf(const struct st_gguf *gguf, struct stint_tokenizer **tokenizer);
void st_tokenizer_close(struct stint_tokenizer *tokenizer); // accepts NULL

// Appends the ids of text[0, n_bytes). flags: STINT_TOKENIZE_*.
stint_status st_tokenizer_encode(const struct stint_tokenizer *tokenizer, const char *text,
                                 size_t n_bytes, uint32_t flags, struct st_ids *ids);

// The most bytes that a text of n tokens may have: so many that no ordinary text of them is longer.
// White space, marks and unknown characters, of which a tokenizer may drop or join any number, do
// not count as ordinary. SIZE_MAX where that is too large.
size_t st_tokenizer_max_bytes(const struct stint_tokenizer *tokenizer, size_t n_tokens);

// Streaming decoder, one token at a time. It holds back an unfinished UTF-8 sequence and leaves out
// the space that SentencePiece puts before a text. Zero-initialise.
struct st_detokenizer {
    unsigned char pending[8]; // an unfinished sequence
    size_t n_pending;
    bool begun;          // text has been written: a space is part of it
    bool in_run, broken; // a run of byte tokens; it is known not to be UTF-8
};

enum {
    ST_PIECE_MAX_BYTES = 4096
}; // no token decodes to more; longer ones are refused when the vocabulary is read

// Writes the whole characters that `id` completes to text (capacity ST_PIECE_MAX_BYTES + 8) and
// returns their bytes. Bytes that cannot become valid UTF-8 come out as U+FFFD. Ids outside the
// vocabulary give nothing.
size_t st_detokenizer_push(struct st_detokenizer *state, const struct stint_tokenizer *tokenizer,
                           int32_t id, uint32_t flags, char *text);
// Before the push of ids[0]: reads a run of byte tokens to its end, so that a broken one is written
// as broken from its first byte on.
void st_detokenizer_look_ahead(struct st_detokenizer *state,
                               const struct stint_tokenizer *tokenizer, const int32_t *ids,
                               size_t n_ids, uint32_t flags);
// Writes the bytes that are still pending at the end, as U+FFFD.
size_t st_detokenizer_finish(struct st_detokenizer *state, char *text);

// Writes the bytes of `id`, which may be part of a character, to out (capacity ST_PIECE_MAX_BYTES)
// and returns their number. Ids outside the vocabulary have none.
size_t st_tokenizer_piece(const struct stint_tokenizer *tokenizer, int32_t id, char *out);

size_t st_tokenizer_vocab(const struct stint_tokenizer *tokenizer);
int32_t st_tokenizer_bos(const struct stint_tokenizer *tokenizer); // -1: none
int32_t st_tokenizer_eos(const struct stint_tokenizer *tokenizer); // -1: none
// True if the token is special: not part of the text itself.
bool st_tokenizer_is_special(const struct stint_tokenizer *tokenizer, int32_t id);
// The id of the token with exactly this text (added and special tokens first); -1 if there is none.
int32_t st_tokenizer_find(const struct stint_tokenizer *tokenizer, const char *text);
// The checkpoint's own Jinja chat template, or NULL.
const char *st_tokenizer_chat_template(const struct stint_tokenizer *tokenizer);

#endif
