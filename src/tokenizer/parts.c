// SPDX-License-Identifier: Apache-2.0
// Building and closing a tokenizer.
#include "tokenizer/added_tokens.h"

#include "base/size.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

const char st_gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

stint_status st_tokenizer_new(size_t max_tokens, struct stint_tokenizer **tokenizer) {
    struct stint_tokenizer *t = calloc(1, sizeof *t);
    if (!t) return st_fail(STINT_E_NOMEM, "no memory for a tokenizer");
    t->bos = t->eos = t->end = t->bpe.unknown = -1;
    stint_status status = st_vocab_open(&t->vocab, max_tokens);
    if (status != STINT_OK) {
        st_tokenizer_close(t);
        return status;
    }
    *tokenizer = t;
    return STINT_OK;
}

void st_tokenizer_close(struct stint_tokenizer *t) {
    if (!t) return;
    st_vocab_close(&t->vocab);
    st_bpe_close(&t->bpe);
    for (size_t i = 0; i < t->n_normalizers; i++) st_normalizer_close(&t->normalizers[i]);
    for (size_t i = 0; i < t->n_pretokenizers; i++) st_pretokenizer_close(&t->pretokenizers[i]);
    for (size_t i = 0; i < t->n_added; i++) free(t->added[i].text);
    free(t->added);
    free(t->chat_template);
    free(t);
}

stint_status st_tokenizer_add_normalizer(struct stint_tokenizer *t, struct st_normalizer step) {
    stint_status status =
        t->n_normalizers < ST_MAX_STEPS
            ? st_normalizer_check(&step)
            : st_fail(STINT_E_UNSUPPORTED, "more than %d normalizers", ST_MAX_STEPS);
    if (status == STINT_OK)
        t->normalizers[t->n_normalizers++] = step;
    else
        st_normalizer_close(&step);
    return status;
}

stint_status st_tokenizer_add_pretokenizer(struct stint_tokenizer *t, struct st_pretokenizer step) {
    size_t room = ST_MAX_STEPS - t->n_pretokenizers;
    if (room < (t->bytes_mapped ? 3 : 1)) {
        st_pretokenizer_close(&step);
        return st_fail(STINT_E_UNSUPPORTED, "more than %d pre-tokenizers", ST_MAX_STEPS);
    }
    if (t->bytes_mapped) { // this step runs between mapping and unmapping
        struct st_pretokenizer *last = &t->pretokenizers[t->n_pretokenizers];
        if (t->n_pretokenizers && last[-1].kind == ST_PRETOKENIZE_UNMAP_BYTES)
            t->n_pretokenizers--;
        else
            t->pretokenizers[t->n_pretokenizers++].kind = ST_PRETOKENIZE_MAP_BYTES;
    }
    t->pretokenizers[t->n_pretokenizers++] = step;
    if (t->bytes_mapped) t->pretokenizers[t->n_pretokenizers++].kind = ST_PRETOKENIZE_UNMAP_BYTES;
    return STINT_OK;
}

stint_status st_tokenizer_add_split(struct stint_tokenizer *t, const char *pattern, size_t n,
                                    enum st_split behavior, bool invert) {
    struct st_pretokenizer step = {
        .kind = ST_PRETOKENIZE_SPLIT, .behavior = behavior, .invert = invert};
    ST_TRY(st_regex_open(pattern, n, &step.regex));
    return st_tokenizer_add_pretokenizer(t, step);
}

stint_status st_tokenizer_add_replace(struct stint_tokenizer *t, const char *from, const char *to) {
    struct st_normalizer step = {.kind = ST_NORMALIZE_REPLACE,
                                 .from = strdup(from),
                                 .to = strdup(to),
                                 .from_bytes = strlen(from),
                                 .to_bytes = strlen(to)};
    if (step.from && step.to) return st_tokenizer_add_normalizer(t, step);
    st_normalizer_close(&step);
    return st_fail(STINT_E_NOMEM, "no memory for a tokenizer");
}

stint_status st_tokenizer_add_nfc(struct stint_tokenizer *t) {
    return st_tokenizer_add_normalizer(
        t, (struct st_normalizer){.kind = ST_NORMALIZE_UNICODE,
                                  .options = UTF8PROC_STABLE | UTF8PROC_COMPOSE});
}

stint_status st_tokenizer_add_prepend(struct stint_tokenizer *t, const char *text, size_t n) {
    struct st_normalizer step = {.kind = ST_NORMALIZE_PREPEND, .to = malloc(n + 1), .to_bytes = n};
    if (!step.to) return st_fail(STINT_E_NOMEM, "no memory for a tokenizer");
    memcpy(step.to, text, n); // a NUL may be among them
    return st_tokenizer_add_normalizer(t, step);
}

// Only UTF-8 without NUL can be searched for.
static size_t searched_bytes(const char *text) {
    size_t bytes = strlen(text);
    for (size_t i = 0, n; i < bytes; i += n)
        if (!(n = st_utf8_length(text + i, bytes - i))) return 0;
    return bytes;
}

stint_status st_tokenizer_add_token(struct stint_tokenizer *t, const struct st_added *added) {
    enum st_token_kind kind = added->special ? ST_TOKEN_CONTROL : ST_TOKEN_ADDED;
    struct st_bytes text = {0};
    if (added->bytes == 0)
        return st_fail(STINT_E_FORMAT, "added token %d is empty", (int)added->id);
    ST_TRY(st_vocab_add(&t->vocab, added->id, added->text, added->bytes, kind, 0.0));
    t->vocab.tokens[added->id].outside = added->outside;
    ST_TRY(st_grow((void **)&t->added, &t->added_capacity, t->n_added, 1, sizeof *t->added));
    stint_status status = st_bytes_append(&text, added->text, added->bytes);
    if (status == STINT_OK && added->normalized)
        status = st_normalize(t->normalizers, t->n_normalizers, &text);
    if (status == STINT_OK) status = st_bytes_append(&text, "", 1);
    if (status != STINT_OK) {
        st_bytes_free(&text);
        return status;
    }
    t->vocab.tokens[added->id].added = true;
    t->added[t->n_added] = *added;
    t->added[t->n_added].text = text.data;
    t->added[t->n_added++].bytes = searched_bytes(text.data);
    return STINT_OK;
}

stint_status st_tokenizer_finish(struct stint_tokenizer *t) {
    if (t->vocab.n == 0) return st_fail(STINT_E_FORMAT, "the vocabulary is empty");
    st_added_sort(t);
    if (t->byte_level)
        st_vocab_single_bytes(&t->vocab);
    else if (t->bpe.byte_fallback)
        st_vocab_mark_bytes(&t->vocab);
    st_bpe_find_words(&t->bpe, &t->vocab);
    st_unigram_measure(&t->unigram, &t->vocab);
    return STINT_OK;
}
