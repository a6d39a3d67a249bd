// SPDX-License-Identifier: Apache-2.0
// Which file holds the tokenizer, and what stands beside it: tokenizer_config.json, merges.txt.
#include "text/load_steps.h"

#include "base/log.h"
#include "base/size.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// folder/name; free() it.
static char *join(const char *folder, size_t n_folder, const char *name) {
    size_t n = n_folder + strlen(name) + 2;
    char *path = malloc(n);
    if (path) snprintf(path, n, "%.*s%s%s", (int)n_folder, folder, n_folder ? "/" : "", name);
    return path;
}

static bool exists(const char *path) {
    return path && access(path, F_OK) == 0;
}

// ---- vocab.json + merges.txt

static const char qwen2_pattern[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
                                    "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
                                    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

static stint_status add_steps(struct stint_tokenizer *t, const json_t *config) {
    const char *class = NULL, *pattern = st_gpt2_pattern;
    bool prefix = false;
    ST_TRY(st_json_string(config, "tokenizer_class", &class));
    ST_TRY(st_json_bool(config, "add_prefix_space", &prefix));
    t->byte_level = t->bpe.byte_level = true;
    if (class && strncmp(class, "Qwen2Tokenizer", 14) == 0) {
        const char *nfc = "{\"type\":\"NFC\"}";
        json_t *step = json_loads(nfc, 0, NULL);
        stint_status status = st_load_normalizer(t, step, 0);
        json_decref(step);
        if (status != STINT_OK) return status;
        pattern = qwen2_pattern;
    }
    if (prefix)
        ST_TRY(
            st_tokenizer_add_pretokenizer(t, (struct st_pretokenizer){.kind = ST_PRETOKENIZE_PREFIX,
                                                                      .prefix = ST_PREFIX_ALWAYS}));
    return st_tokenizer_add_split(t, pattern, strlen(pattern), ST_SPLIT_ISOLATED, false);
}

// A pair a line; a first line "#version" is a comment.
static stint_status read_merges(struct stint_tokenizer *t, const struct st_map *map) {
    const char *text = (const char *)map->data, *end = text + map->bytes;
    size_t n_lines = 0;
    uint32_t rank = 0;
    for (size_t i = 0; i < map->bytes; i++) n_lines += text[i] == '\n';
    ST_TRY(st_bpe_open_merges(&t->bpe, n_lines + 1));
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) stop = end;
        size_t n = (size_t)(stop - line);
        if (n && line[n - 1] == '\r') n--;
        const char *space = n ? memchr(line, ' ', n) : NULL;
        bool comment = n >= 8 && line == text && memcmp(line, "#version", 8) == 0;
        if (n && !comment) {
            if (!space) return st_fail(STINT_E_FORMAT, "merge %u is no pair", rank);
            ST_TRY(st_load_merge(t, rank++, line, (size_t)(space - line), space + 1,
                                 n - (size_t)(space - line) - 1));
        }
        line = stop + (stop < end);
    }
    return STINT_OK;
}

static stint_status read_vocab(struct stint_tokenizer *t, const json_t *vocab,
                               const struct st_map *merges, const json_t *config) {
    ST_TRY(add_steps(t, config));
    ST_TRY(st_load_bpe_vocab(t, vocab));
    ST_TRY(read_merges(t, merges));
    const char *id;
    json_t *item;
    json_object_foreach(json_object_get(config, "added_tokens_decoder"), id, item) {
        struct st_added added = {0};
        const char *text = NULL;
        char *end;
        long long value = strtoll(id, &end, 10);
        ST_TRY(st_json_string(item, "content", &text));
        if (!text || *end || end == id || value < 0 || value > INT32_MAX)
            return st_fail(STINT_E_FORMAT, "'added_tokens_decoder': '%.40s' is no token", id);
        ST_TRY(st_load_added_flags(item, &added));
        added.text = (char *)text;
        added.bytes = strlen(text);
        added.id = (int32_t)value;
        added.outside = st_vocab_kind(&t->vocab, added.id) == ST_TOKEN_NONE;
        ST_TRY(st_tokenizer_add_token(t, &added));
    }
    return st_tokenizer_finish(t);
}

stint_status st_tokenizer_from_vocab(const char *name, const struct st_map *vocab,
                                     const struct st_map *merges, const json_t *config,
                                     struct stint_tokenizer **tokenizer) {
    json_t *json = NULL;
    struct stint_tokenizer *t = NULL;
    ST_TRY(st_json_parse(name, vocab->data, vocab->bytes, &json));
    // Added tokens come from another file: a few more than this one has bytes.
    stint_status status = st_tokenizer_new(vocab->bytes + 65536, &t);
    if (status == STINT_OK) status = read_vocab(t, json, merges, config);
    json_decref(json);
    if (status != STINT_OK) {
        st_tokenizer_close(t);
        return st_fail_prefix("%s: ", name);
    }
    *tokenizer = t;
    return STINT_OK;
}

// ---- tokenizer_config.json

// "token", or {"content": "token"}.
static stint_status read_token(const struct stint_tokenizer *t, const json_t *config,
                               const char *key, int32_t *id) {
    const json_t *value = json_object_get(config, key);
    const char *text = json_string_value(value);
    if (json_is_object(value)) ST_TRY(st_json_string(value, "content", &text));
    if (!text) return STINT_OK;
    int32_t found = st_vocab_find(&t->vocab, text, strlen(text));
    if (found >= 0) *id = found;
    return STINT_OK;
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
    bool add_bos = t->add_bos;
    const char *template = find_template(config);
    ST_TRY(read_token(t, config, "bos_token", &t->bos));
    ST_TRY(read_token(t, config, "eos_token", &t->eos));
    ST_TRY(st_json_bool(config, "add_bos_token", &add_bos));
    t->add_bos = add_bos && t->bos >= 0;
    if (template && !(t->chat_template = strdup(template)))
        return st_fail(STINT_E_NOMEM, "no memory for a tokenizer");
    return STINT_OK;
}

// ---- paths

struct found {
    char *file, *merges, *config, *template; // owned; NULL where there is none
};

static stint_status open_vocab(const struct found *f, const struct st_map *map,
                               const json_t *config, struct stint_tokenizer **t) {
    struct st_map merges = {0};
    if (!exists(f->merges))
        return st_fail(STINT_E_IO, "%s: merges.txt is missing beside it", f->file);
    ST_TRY(st_map_open(f->merges, &merges));
    stint_status status = st_tokenizer_from_vocab(f->file, map, &merges, config, t);
    st_map_close(&merges);
    return status;
}

// By content: GGUF's magic, JSON with a "model" or a plain object, else SentencePiece.
static stint_status open_map(const struct found *f, const struct st_map *map, const json_t *config,
                             struct stint_tokenizer **t) {
    const char *name = strrchr(f->file, '/');
    name = name ? name + 1 : f->file;
    size_t first = 0;
    if (map->bytes == 0) return st_fail(STINT_E_FORMAT, "%s: is empty", f->file);
    if (map->bytes >= 4 && memcmp(map->data, "GGUF", 4) == 0) {
        struct st_gguf *gguf = NULL;
        ST_TRY(st_gguf_open(f->file, map, NULL, &gguf));
        stint_status status = st_tokenizer_from_gguf(gguf, t);
        st_gguf_close(gguf);
        return status == STINT_OK ? status : st_fail_prefix("%s: ", f->file);
    }
    while (first < map->bytes && strchr(" \t\r\n", map->data[first])) first++;
    if (first == map->bytes || map->data[first] != '{')
        return st_tokenizer_from_sentencepiece(f->file, map->data, map->bytes, t);
    if (strcmp(name, "vocab.json") == 0) return open_vocab(f, map, config, t);
    return st_tokenizer_from_json(f->file, map->data, map->bytes, t);
}

// Newer checkpoints keep the template in a file of its own.
static stint_status read_template_file(const struct found *f, struct stint_tokenizer *t) {
    struct st_map map = {0};
    if (t->chat_template || !exists(f->template)) return STINT_OK;
    ST_TRY(st_map_open(f->template, &map));
    t->chat_template = map.bytes ? strndup((const char *)map.data, map.bytes) : NULL;
    st_map_close(&map);
    return STINT_OK;
}

static stint_status open_found(const struct found *f, struct stint_tokenizer **tokenizer) {
    struct st_map map = {0};
    json_t *config = NULL;
    struct stint_tokenizer *t = NULL;
    ST_TRY(st_map_open(f->file, &map));
    stint_status status = exists(f->config) ? st_json_open(f->config, &config) : STINT_OK;
    if (status == STINT_OK) status = open_map(f, &map, config, &t);
    if (status == STINT_OK && config) {
        status = st_tokenizer_apply_config(t, config);
        if (status != STINT_OK) st_fail_prefix("%s: ", f->config);
    }
    if (status == STINT_OK) status = read_template_file(f, t);
    st_map_close(&map);
    json_decref(config);
    if (status != STINT_OK) {
        st_tokenizer_close(t);
        return status;
    }
    *tokenizer = t;
    return STINT_OK;
}

static stint_status find_in_folder(const char *path, struct found *f) {
    static const char *const names[] = {"tokenizer.json", "vocab.json", "tokenizer.model"};
    for (size_t i = 0; i < 3; i++) {
        char *file = join(path, strlen(path), names[i]);
        if (exists(file)) {
            f->file = file;
            return STINT_OK;
        }
        free(file);
    }
    return st_fail(STINT_E_IO,
                   "%s: no tokenizer: looked for tokenizer.json, vocab.json and tokenizer.model",
                   path);
}

stint_status st_tokenizer_open(const char *path, struct stint_tokenizer **tokenizer) {
    struct stat info;
    struct found f = {0};
    stint_status status = STINT_OK;
    if (stat(path, &info) != 0) return st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
    bool folder = S_ISDIR(info.st_mode);
    const char *slash = strrchr(path, '/');
    size_t n_folder = folder ? strlen(path) : slash ? (size_t)(slash - path) : 0;
    if (slash == path && !folder) n_folder = 1;
    if (folder)
        status = find_in_folder(path, &f);
    else if (!(f.file = strdup(path)))
        status = st_fail(STINT_E_NOMEM, "no memory for a path");
    f.merges = join(path, n_folder, "merges.txt");
    f.config = join(path, n_folder, "tokenizer_config.json");
    f.template = join(path, n_folder, "chat_template.jinja");
    if (status == STINT_OK) status = open_found(&f, tokenizer);
    free(f.file);
    free(f.merges);
    free(f.config);
    free(f.template);
    return status;
}
