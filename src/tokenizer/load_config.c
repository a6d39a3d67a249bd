// SPDX-License-Identifier: Apache-2.0
// tokenizer_config.json and the older special_tokens_map.json: added tokens, the ids that begin and
// end a text, the chat template. Any kind of vocabulary file can have them beside it.
#include "tokenizer/load_steps.h"

#include "tokenizer/added_tokens.h"

#include <stdlib.h>
#include <string.h>

// "token", or {"content": "token"}.
static const char *token_text(const json_t *value) {
    return json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
}

static stint_status read_token(const struct stint_tokenizer *t, const json_t *config,
                               const char *key, int32_t *id) {
    const json_t *value = json_object_get(config, key);
    const char *text = token_text(value);
    if (json_is_null(value)) *id = -1; // null: the tokenizer has none
    if (value && !json_is_null(value) && !text)
        return st_fail(STINT_E_FORMAT, "'%s' is not a token", key);
    int32_t found = text ? st_vocab_find(&t->vocab, text, strlen(text)) : -1;
    if (found >= 0) *id = found;
    return STINT_OK;
}

static bool is_added(const struct stint_tokenizer *t, int32_t id) {
    return (size_t)id < t->vocab.n && t->vocab.tokens[id].added;
}

static stint_status add_decoder_token(struct stint_tokenizer *t, const char *id,
                                      const json_t *item) {
    struct st_added added = {0};
    const char *text = token_text(item);
    char *end;
    long long value = strtoll(id, &end, 10);
    if (!text || *end || end == id || value < 0 || value > INT32_MAX)
        return st_fail(STINT_E_FORMAT, "'added_tokens_decoder': '%.40s' is not a token", id);
    if (is_added(t, (int32_t)value)) return STINT_OK;
    ST_TRY(st_load_added_flags(item, &added));
    // With SentencePiece they are cut out of the text before normalisation.
    if (t->metaspace) added.normalized = false;
    added.text = (char *)text;
    added.bytes = strlen(text);
    added.id = (int32_t)value;
    added.outside = st_vocab_kind(&t->vocab, added.id) == ST_TOKEN_NONE;
    return st_tokenizer_add_token(t, &added);
}

// A token of the vocabulary that was not listed as added is special if it has a role.
stint_status st_load_special(struct stint_tokenizer *t, const char *text) {
    int32_t id = text && *text ? st_vocab_find(&t->vocab, text, strlen(text)) : -1;
    if (id < 0 || is_added(t, id)) return STINT_OK;
    struct st_added added = {
        .text = (char *)text, .bytes = strlen(text), .id = id, .special = true};
    return st_tokenizer_add_token(t, &added);
}

static stint_status add_roles(struct stint_tokenizer *t, const json_t *config) {
    static const char *const roles[] = {"bos_token", "eos_token", "unk_token", "pad_token",
                                        "sep_token", "cls_token", "mask_token"};
    size_t i;
    json_t *item;
    for (i = 0; i < sizeof roles / sizeof *roles; i++)
        ST_TRY(st_load_special(t, token_text(json_object_get(config, roles[i]))));
    json_array_foreach(json_object_get(config, "additional_special_tokens"), i, item)
        ST_TRY(st_load_special(t, token_text(item)));
    ST_TRY(read_token(t, config, "bos_token", &t->bos));
    return read_token(t, config, "eos_token", &t->eos);
}

// The template, or the one named "default" of several.
static const char *find_template(const json_t *config) {
    const json_t *value = json_object_get(config, "chat_template");
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item) {
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name && strcmp(name, "default") == 0)
            return json_string_value(json_object_get(item, "template"));
    }
    return json_string_value(value);
}

stint_status st_tokenizer_apply_config(struct stint_tokenizer *t, const json_t *config) {
    bool add_bos = t->add_bos, add_eos = false;
    const char *id, *template = find_template(config);
    json_t *item;
    if (!json_is_object(config)) return st_fail(STINT_E_FORMAT, "expected an object");
    json_object_foreach(json_object_get(config, "added_tokens_decoder"), id, item)
        ST_TRY(add_decoder_token(t, id, item));
    ST_TRY(add_roles(t, config));
    st_added_sort(t);
    ST_TRY(st_json_bool(config, "add_bos_token", &add_bos));
    t->add_bos = add_bos && t->bos >= 0;
    ST_TRY(st_json_bool(config, "add_eos_token", &add_eos));
    if (add_eos) t->end = t->eos;
    if (template) {
        free(t->chat_template);
        if (!(t->chat_template = strdup(template)))
            return st_fail(STINT_E_NOMEM, "no memory for a tokenizer");
    }
    return STINT_OK;
}
