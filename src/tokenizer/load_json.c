// SPDX-License-Identifier: Apache-2.0
// tokenizer.json, as Hugging Face's tokenizers library writes it: each linear op is an object with
// a "type".
#include "tokenizer/parts.h"

#include "tokenizer/load_steps.h"

#include <string.h>

// Vocabulary text in the form that the model uses: raw bytes if the file is byte-level.
static stint_status add_vocab(struct stint_tokenizer *t, int64_t id, const char *text, size_t n,
                              double score) {
    char bytes[ST_PIECE_MAX_BYTES];
    size_t n_bytes;
    if (n == 0) return st_fail(STINT_E_FORMAT, "token %lld is empty", (long long)id);
    if (t->byte_level && n <= sizeof bytes && st_byte_level_decode(text, n, bytes, &n_bytes))
        return st_vocab_add(&t->vocab, id, bytes, n_bytes, ST_TOKEN_NORMAL, score);
    return st_vocab_add(&t->vocab, id, text, n, ST_TOKEN_NORMAL, score);
}

stint_status st_load_bpe_vocab(struct stint_tokenizer *t, const json_t *vocab) {
    const char *text;
    json_t *id;
    if (!json_is_object(vocab)) return st_fail(STINT_E_FORMAT, "'vocab' is not an object");
    json_object_foreach((json_t *)vocab, text, id) {
        if (!json_is_integer(id))
            return st_fail(STINT_E_FORMAT, "'vocab': the id of '%.40s' is not an integer", text);
        ST_TRY(add_vocab(t, json_integer_value(id), text, strlen(text), 0.0));
    }
    return STINT_OK;
}

stint_status st_load_merge(struct stint_tokenizer *t, uint32_t rank, const char *left,
                           size_t n_left, const char *right, size_t n_right) {
    char a[ST_PIECE_MAX_BYTES], b[ST_PIECE_MAX_BYTES];
    size_t n_a, n_b;
    if (n_left <= sizeof a && n_right <= sizeof b && t->byte_level &&
        st_byte_level_decode(left, n_left, a, &n_a) &&
        st_byte_level_decode(right, n_right, b, &n_b)) {
        if (st_bpe_add_merge(&t->bpe, &t->vocab, rank, a, n_a, b, n_b)) return STINT_OK;
    } else if (st_bpe_add_merge(&t->bpe, &t->vocab, rank, left, n_left, right, n_right)) {
        return STINT_OK;
    }
    return st_fail(STINT_E_FORMAT, "merge %u, '%.*s' + '%.*s': a part or the result is not a token",
                   rank, (int)(n_left < 40 ? n_left : 40), left, (int)(n_right < 40 ? n_right : 40),
                   right);
}

// "a b", or ["a", "b"].
static stint_status read_merge(struct stint_tokenizer *t, uint32_t rank, const json_t *item) {
    const char *text = json_string_value(item), *space = text ? strchr(text, ' ') : NULL;
    if (space && space != text)
        return st_load_merge(t, rank, text, (size_t)(space - text), space + 1, strlen(space + 1));
    const json_t *left = json_array_get(item, 0), *right = json_array_get(item, 1);
    if (json_array_size(item) != 2 || !json_is_string(left) || !json_is_string(right))
        return st_fail(STINT_E_FORMAT, "merge %u is not a pair", rank);
    return st_load_merge(t, rank, json_string_value(left), json_string_length(left),
                         json_string_value(right), json_string_length(right));
}

static stint_status read_unknown(struct stint_tokenizer *t, const json_t *model) {
    const char *unknown = NULL;
    ST_TRY(st_json_string(model, "unk_token", &unknown));
    if (unknown) t->bpe.unknown = st_vocab_find(&t->vocab, unknown, strlen(unknown));
    return STINT_OK;
}

static stint_status read_bpe(struct stint_tokenizer *t, const json_t *model) {
    const json_t *merges = json_object_get(model, "merges");
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (int i = 0; i < 2; i++) {
        const char *affix = NULL;
        ST_TRY(st_json_string(model, affixes[i], &affix));
        if (affix && *affix)
            return st_fail(STINT_E_UNSUPPORTED, "'%s' is '%.20s'", affixes[i], affix);
    }
    ST_TRY(st_json_bool(model, "byte_fallback", &t->bpe.byte_fallback));
    ST_TRY(st_json_bool(model, "fuse_unk", &t->bpe.fuse_unknown));
    ST_TRY(st_json_bool(model, "ignore_merges", &t->bpe.ignore_merges));
    ST_TRY(st_load_bpe_vocab(t, json_object_get(model, "vocab")));
    if (!json_is_array(merges)) return st_fail(STINT_E_FORMAT, "'merges' is not a list");
    ST_TRY(st_bpe_open_merges(&t->bpe, json_array_size(merges)));
    t->bpe.byte_level = t->byte_level;
    for (size_t i = 0; i < json_array_size(merges); i++)
        ST_TRY(read_merge(t, (uint32_t)i, json_array_get(merges, i)));
    return read_unknown(t, model);
}

static stint_status read_unigram(struct stint_tokenizer *t, const json_t *model) {
    const json_t *vocab = json_object_get(model, "vocab");
    int64_t unknown = -1;
    t->is_unigram = true;
    t->bpe.fuse_unknown = true;
    ST_TRY(st_json_bool(model, "byte_fallback", &t->bpe.byte_fallback));
    if (!json_is_array(vocab)) return st_fail(STINT_E_FORMAT, "'vocab' is not a list");
    for (size_t i = 0; i < json_array_size(vocab); i++) {
        const json_t *pair = json_array_get(vocab, i), *text = json_array_get(pair, 0);
        const json_t *score = json_array_get(pair, 1);
        if (!json_is_string(text) || !json_is_number(score))
            return st_fail(STINT_E_FORMAT, "'vocab'[%zu] is not a pair of text and score", i);
        ST_TRY(add_vocab(t, (int64_t)i, json_string_value(text), json_string_length(text),
                         json_number_value(score)));
    }
    ST_TRY(st_json_int(model, "unk_id", 0, INT32_MAX, &unknown));
    t->bpe.unknown = (size_t)unknown < t->vocab.n ? (int32_t)unknown : -1;
    return STINT_OK;
}

static stint_status read_model(struct stint_tokenizer *t, const json_t *model) {
    const char *type = NULL;
    ST_TRY(st_json_string(model, "type", &type));
    if (!type) type = json_object_get(model, "merges") ? "BPE" : "missing"; // old files
    if (strcmp(type, "BPE") == 0) return read_bpe(t, model);
    if (strcmp(type, "Unigram") == 0) return read_unigram(t, model);
    return st_fail(STINT_E_UNSUPPORTED, "model type '%.40s' is not known; known are: BPE, Unigram",
                   type);
}

static stint_status read_added(struct stint_tokenizer *t, const json_t *list) {
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) {
        struct st_added a = {0};
        const char *text = NULL;
        int64_t id = -1;
        ST_TRY(st_json_string(item, "content", &text));
        ST_TRY(st_json_int(item, "id", 0, INT32_MAX, &id));
        if (!text || id < 0)
            return st_fail(STINT_E_FORMAT, "'added_tokens'[%zu] lacks content or id", i);
        a.id = (int32_t)id;
        a.outside = st_vocab_kind(&t->vocab, a.id) == ST_TOKEN_NONE;
        ST_TRY(st_load_added_flags(item, &a));
        a.text = (char *)text;
        a.bytes = strlen(text);
        ST_TRY(st_tokenizer_add_token(t, &a));
    }
    return STINT_OK;
}

stint_status st_load_added_flags(const json_t *item, struct st_added *added) {
    added->normalized =
        true; // the default of Hugging Face's library for tokens that are not special
    ST_TRY(st_json_bool(item, "special", &added->special));
    if (added->special) added->normalized = false;
    ST_TRY(st_json_bool(item, "normalized", &added->normalized));
    ST_TRY(st_json_bool(item, "lstrip", &added->lstrip));
    ST_TRY(st_json_bool(item, "rstrip", &added->rstrip));
    return st_json_bool(item, "single_word", &added->single_word);
}

// A template that begins with a special token asks for BOS, one that ends with one for that.
static stint_status read_post_processor(struct stint_tokenizer *t, const json_t *post) {
    const char *type = NULL;
    size_t i;
    json_t *item;
    ST_TRY(st_json_string(post, "type", &type));
    json_array_foreach(json_object_get(post, "processors"), i,
                       item) if (json_object_get(item, "processors") == NULL)
        ST_TRY(read_post_processor(t, item));
    if (!type || strcmp(type, "TemplateProcessing") != 0) return STINT_OK;
    const json_t *single = json_object_get(post, "single");
    const json_t *first = json_object_get(json_array_get(single, 0), "SpecialToken");
    size_t n = json_array_size(single);
    const json_t *last = n > 1 ? json_array_get(single, n - 1) : NULL;
    const char *text = NULL, *end = NULL;
    ST_TRY(st_json_string(first, "id", &text));
    ST_TRY(st_json_string(json_object_get(last, "SpecialToken"), "id", &end));
    if (end) t->end = st_vocab_find(&t->vocab, end, strlen(end));
    if (!text) return STINT_OK;
    t->bos = st_vocab_find(&t->vocab, text, strlen(text));
    t->add_bos = t->bos >= 0;
    return STINT_OK;
}

static stint_status read_all(struct stint_tokenizer *t, const json_t *json) {
    if (!json_is_object(json)) return st_fail(STINT_E_FORMAT, "expected an object");
    // The steps come first, because they say whether the vocabulary is byte-level.
    ST_TRY(st_load_normalizer(t, json_object_get(json, "normalizer"), 0));
    ST_TRY(st_load_pretokenizer(t, json_object_get(json, "pre_tokenizer"), 0));
    ST_TRY(st_load_decoder(t, json_object_get(json, "decoder"), 0));
    ST_TRY(read_model(t, json_object_get(json, "model")));
    ST_TRY(read_added(t, json_object_get(json, "added_tokens")));
    return read_post_processor(t, json_object_get(json, "post_processor"));
}

stint_status st_tokenizer_from_json(const char *name, const void *data, size_t bytes,
                                    struct stint_tokenizer **tokenizer) {
    json_t *json = NULL;
    struct stint_tokenizer *t = NULL;
    ST_TRY(st_json_parse(name, data, bytes, &json));
    // A token takes at least the six bytes of "a":1, and ids have few gaps.
    stint_status status = st_tokenizer_new(bytes / 6 + 1024, &t);
    if (status == STINT_OK) status = read_all(t, json);
    if (status == STINT_OK) status = st_tokenizer_finish(t);
    json_decref(json);
    if (status != STINT_OK) {
        st_tokenizer_close(t);
        return st_fail_prefix("%s: ", name);
    }
    *tokenizer = t;
    return STINT_OK;
}
