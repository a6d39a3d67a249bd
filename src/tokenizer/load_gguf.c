// SPDX-License-Identifier: Apache-2.0
// tokenizer.ggml.*: a vocabulary in GGUF metadata. "gpt2" is byte-level BPE with named splits,
// "llama" is SentencePiece's BPE by scores, "t5" its unigram model, "gemma4" SentencePiece's BPE by
// merges.
#include "tokenizer/load_steps.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name

struct reader {
    const struct st_gguf *gguf;
    struct stint_tokenizer *t;
    bool is_phi3, newlines_whole;
    struct st_gguf_array tokens, kinds, scores, merges;
};

static bool equals(struct st_gguf_string s, const char *text) {
    return s.bytes == strlen(text) && memcmp(s.data, text, s.bytes) == 0;
}

// GGUF's token types, 1 based.
static enum st_token_kind kind_of(uint64_t type) {
    static const enum st_token_kind kinds[] = {ST_TOKEN_NORMAL,  ST_TOKEN_NORMAL, ST_TOKEN_UNKNOWN,
                                               ST_TOKEN_CONTROL, ST_TOKEN_ADDED,  ST_TOKEN_UNUSED,
                                               ST_TOKEN_NORMAL};
    return type < sizeof kinds / sizeof *kinds ? kinds[type] : ST_TOKEN_NORMAL;
}

// Phi-3's tokenizer.json takes the white space after its marks into them, but for two of them.
// GGUF has no key for that.
static bool takes_space(const struct reader *r, struct st_gguf_string text) {
    bool mark = equals(text, "</s>") || (text.bytes > 2 && memcmp(text.data, "<|", 2) == 0);
    return r->is_phi3 && mark && !equals(text, "<|endoftext|>");
}

static stint_status add_token(struct reader *r, uint64_t id, struct st_gguf_string text) {
    char bytes[ST_PIECE_MAX_BYTES];
    size_t n = text.bytes;
    const char *data = text.data;
    enum st_token_kind kind =
        id < r->kinds.count ? kind_of(st_gguf_array_u64(&r->kinds, id)) : ST_TOKEN_NORMAL;
    double score = id < r->scores.count ? (double)st_gguf_array_f32(&r->scores, id) : 0.0;
    if (n == 0) return STINT_OK; // padding of the vocabulary: a gap
    if (r->newlines_whole && strspn(data, "\n") >= n) kind = ST_TOKEN_ADDED;
    bool special = kind == ST_TOKEN_CONTROL || kind == ST_TOKEN_UNKNOWN;
    if (special || kind == ST_TOKEN_ADDED) {
        if (n > ST_PIECE_MAX_BYTES) n = ST_PIECE_MAX_BYTES + 1; // refused below, with its text
        struct st_added added = {.text = (char *)data,
                                 .bytes = n,
                                 .id = (int32_t)id,
                                 .special = special,
                                 .rstrip = takes_space(r, text)};
        if (memchr(data, 0, st_min(n, text.bytes)) || n > ST_PIECE_MAX_BYTES)
            return st_vocab_add(&r->t->vocab, (int64_t)id, data, n, kind, score);
        return st_tokenizer_add_token(r->t, &added);
    }
    if (r->t->byte_level && n <= sizeof bytes && st_byte_level_decode(data, n, bytes, &n))
        data = bytes;
    return st_vocab_add(&r->t->vocab, (int64_t)id, data, n, kind, score);
}

static stint_status read_tokens(struct reader *r) {
    const unsigned char *cursor = r->tokens.data;
    for (uint64_t id = 0; id < r->tokens.count; id++)
        ST_TRY(add_token(r, id, st_gguf_next_string(&cursor)));
    return STINT_OK;
}

static stint_status read_merges(struct reader *r) {
    const unsigned char *cursor = r->merges.data;
    ST_TRY(st_bpe_open_merges(&r->t->bpe, r->merges.count));
    for (uint64_t i = 0; i < r->merges.count && i < UINT32_MAX; i++) {
        struct st_gguf_string s = st_gguf_next_string(&cursor);
        const char *space = s.bytes > 1 ? memchr(s.data + 1, ' ', s.bytes - 1) : NULL;
        if (!space)
            return st_fail(STINT_E_FORMAT, "merge %llu is not a pair", (unsigned long long)i);
        ST_TRY(st_load_merge(r->t, (uint32_t)i, s.data, (size_t)(space - s.data), space + 1,
                             s.bytes - (size_t)(space - s.data) - 1));
    }
    return STINT_OK;
}

static stint_status add_steps(struct reader *r) {
    struct st_gguf_string pre = {"default", 7};
    ST_TRY(st_gguf_str(r->gguf, KEY("pre"), &pre));
    const struct st_gguf_family *family = st_gguf_family(pre.data, pre.bytes);
    if (!family) {
        char known[768] = "";
        st_gguf_family_names(known, sizeof known);
        return st_fail(STINT_E_UNSUPPORTED, KEY("pre") " '%.*s' is not known; known are: %s",
                       (int)st_min(pre.bytes, 40), pre.data, known);
    }
    if (family->nfc) ST_TRY(st_tokenizer_add_nfc(r->t));
    for (const char *const *split = family->splits; *split; split++)
        if (strcmp(*split, ST_GGUF_MAP_BYTES) == 0)
            r->t->bytes_mapped = true;
        else
            ST_TRY(st_tokenizer_add_split(r->t, *split, strlen(*split), ST_SPLIT_ISOLATED, false));
    r->t->bpe.ignore_merges = r->t->add_bos = family->whole;
    return STINT_OK;
}

static stint_status read_byte_level(struct reader *r) {
    r->t->byte_level = r->t->bpe.byte_level = true;
    ST_TRY(add_steps(r));
    ST_TRY(read_tokens(r));
    return read_merges(r);
}

static stint_status read_sentencepiece(struct reader *r, bool unigram) {
    bool prefix = true, squeeze = false;
    struct stint_tokenizer *t = r->t;
    t->is_unigram = t->unigram.sentencepiece = unigram;
    t->metaspace = true;
    t->add_bos = !unigram;
    t->bpe.byte_fallback = true;
    ST_TRY(st_gguf_bool(r->gguf, KEY("add_space_prefix"), &prefix));
    ST_TRY(st_gguf_bool(r->gguf, KEY("remove_extra_whitespaces"), &squeeze));
    t->strip_first_space = prefix;
    if (squeeze)
        ST_TRY(
            st_tokenizer_add_normalizer(t, (struct st_normalizer){.kind = ST_NORMALIZE_SQUEEZE}));
    if (prefix) ST_TRY(st_tokenizer_add_prepend(t, " ", 1));
    ST_TRY(st_tokenizer_add_replace(t, " ", "\xe2\x96\x81"));
    return read_tokens(r);
}

// Spaces are characters like others, and newlines are words by themselves.
static stint_status read_gemma(struct reader *r) {
    bool prefix = false;
    struct stint_tokenizer *t = r->t;
    t->metaspace = t->add_bos = t->bpe.byte_fallback = r->newlines_whole = true;
    ST_TRY(st_gguf_bool(r->gguf, KEY("add_space_prefix"), &prefix));
    t->strip_first_space = prefix;
    if (prefix) ST_TRY(st_tokenizer_add_prepend(t, " ", 1));
    ST_TRY(st_tokenizer_add_replace(t, " ", "\xe2\x96\x81"));
    ST_TRY(st_tokenizer_add_split(t, "\n+", 2, ST_SPLIT_ISOLATED, false));
    ST_TRY(read_tokens(r));
    return read_merges(r);
}

static stint_status read_id(struct reader *r, const char *key, int32_t *id) {
    uint64_t value = UINT32_MAX;
    ST_TRY(st_gguf_u64(r->gguf, key, UINT32_MAX, &value));
    if (value < r->tokens.count && value <= INT32_MAX) *id = (int32_t)value;
    return STINT_OK;
}

static stint_status read_special(struct reader *r) {
    struct stint_tokenizer *t = r->t;
    bool add_bos = t->add_bos, add_eos = false;
    struct st_gguf_string template = {NULL, 0};
    ST_TRY(read_id(r, KEY("bos_token_id"), &t->bos));
    ST_TRY(read_id(r, KEY("eos_token_id"), &t->eos));
    // A byte that a byte-level vocabulary lacks is left out, whatever the file calls unknown.
    if (!t->byte_level) ST_TRY(read_id(r, KEY("unknown_token_id"), &t->bpe.unknown));
    ST_TRY(st_gguf_bool(r->gguf, KEY("add_bos_token"), &add_bos));
    t->add_bos = add_bos && t->bos >= 0;
    ST_TRY(st_gguf_bool(r->gguf, KEY("add_eos_token"), &add_eos));
    if (add_eos) t->end = t->eos;
    ST_TRY(st_gguf_str(r->gguf, "tokenizer.chat_template", &template));
    if (template.data && !(t->chat_template = strndup(template.data, template.bytes)))
        return st_fail(STINT_E_NOMEM, "no memory for a tokenizer");
    return STINT_OK;
}

static stint_status read_all(struct reader *r, struct st_gguf_string model) {
    bool llama = equals(model, "llama"), unigram = equals(model, "t5");
    if (equals(model, "gpt2"))
        ST_TRY(read_byte_level(r));
    else if (llama || unigram)
        ST_TRY(read_sentencepiece(r, unigram));
    else if (equals(model, "gemma4"))
        ST_TRY(read_gemma(r));
    else
        return st_fail(STINT_E_UNSUPPORTED,
                       KEY("model") " '%.*s' is not known; known are: gpt2, llama, t5, gemma4",
                       (int)st_min(model.bytes, 40), model.data);
    ST_TRY(read_special(r));
    return st_tokenizer_finish(r->t);
}

stint_status st_tokenizer_from_gguf(const struct st_gguf *gguf,
                                    struct stint_tokenizer **tokenizer) {
    struct st_gguf_string model = {NULL, 0};
    struct st_gguf_string architecture = {NULL, 0};
    struct reader r = {.gguf = gguf};
    ST_TRY(st_gguf_str(gguf, KEY("model"), &model));
    ST_TRY(st_gguf_str(gguf, "general.architecture", &architecture));
    r.is_phi3 = architecture.data && equals(architecture, "phi3");
    if (!model.data || equals(model, "no_vocab") || equals(model, "none"))
        return st_fail(STINT_E_IO, "this GGUF file holds no vocabulary");
    ST_TRY(st_gguf_array(gguf, KEY("tokens"), ST_GGUF_STRING, &r.tokens));
    ST_TRY(st_gguf_array(gguf, KEY("scores"), ST_GGUF_F32, &r.scores));
    ST_TRY(st_gguf_array(gguf, KEY("token_type"), ST_GGUF_I32, &r.kinds));
    ST_TRY(st_gguf_array(gguf, KEY("merges"), ST_GGUF_STRING, &r.merges));
    if (r.tokens.count == 0 || r.tokens.count > INT32_MAX)
        return st_fail(STINT_E_FORMAT, KEY("tokens") " has %llu entries",
                       (unsigned long long)r.tokens.count);
    ST_TRY(st_tokenizer_new((size_t)r.tokens.count, &r.t));
    stint_status status = read_all(&r, model);
    if (status != STINT_OK) {
        st_tokenizer_close(r.t);
        return status;
    }
    *tokenizer = r.t;
    return STINT_OK;
}
