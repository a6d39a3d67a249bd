// SPDX-License-Identifier: Apache-2.0
// Which file holds the tokenizer, and what stands beside it: tokenizer_config.json, merges.txt.
#include "text/load_steps.h"

#include "base/log.h"
#include "text/added_tokens.h"

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

static const char *class_of(const json_t *config) {
    return json_string_value(json_object_get(config, "tokenizer_class"));
}

static stint_status add_steps(struct stint_tokenizer *t, const json_t *config) {
    const char *class = class_of(config), *pattern = st_gpt2_pattern;
    bool prefix = false;
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
    ST_TRY(st_tokenizer_finish(t));
    if (!config || !class_of(config) || strncmp(class_of(config), "GPT2", 4) == 0) {
        const char *end = "<|endoftext|>"; // what this class has where nothing else is said
        t->bos = t->eos = st_vocab_find(&t->vocab, end, strlen(end));
        ST_TRY(st_load_special(t, end));
        st_added_sort(t);
    }
    return STINT_OK;
}

stint_status st_tokenizer_from_vocab(const char *name, const struct st_map *vocab,
                                     const struct st_map *merges, const json_t *config,
                                     struct stint_tokenizer **tokenizer) {
    json_t *json = NULL;
    struct stint_tokenizer *t = NULL;
    ST_TRY(st_json_parse(name, vocab->data, vocab->bytes, &json));
    // Added tokens come from another file: a few more than this one has bytes.
    stint_status status = st_tokenizer_new(vocab->bytes / 6 + 65536, &t);
    if (status == STINT_OK) status = read_vocab(t, json, merges, config);
    json_decref(json);
    if (status != STINT_OK) {
        st_tokenizer_close(t);
        return st_fail_prefix("%s: ", name);
    }
    *tokenizer = t;
    return STINT_OK;
}

// ---- paths

struct found {
    char *file, *merges, *config, *specials, *template; // owned; NULL where there is none
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

// What stands beside the vocabulary; `json` may be read already.
static stint_status apply_file(const char *path, json_t *json, struct stint_tokenizer *t) {
    json_t *opened = NULL;
    if (!json && !exists(path)) return STINT_OK;
    if (!json) ST_TRY(st_json_open(path, &opened));
    stint_status status = st_tokenizer_apply_config(t, json ? json : opened);
    json_decref(opened);
    return status == STINT_OK ? status : st_fail_prefix("%s: ", path);
}

static stint_status open_found(const struct found *f, struct stint_tokenizer **tokenizer) {
    struct st_map map = {0};
    json_t *config = NULL;
    struct stint_tokenizer *t = NULL;
    ST_TRY(st_map_open(f->file, &map));
    stint_status status = exists(f->config) ? st_json_open(f->config, &config) : STINT_OK;
    if (status == STINT_OK) status = open_map(f, &map, config, &t);
    if (status == STINT_OK) status = apply_file(f->specials, NULL, t);
    if (status == STINT_OK && config) status = apply_file(f->config, config, t);
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

bool st_tokenizer_is_there(const char *folder) {
    struct found f = {0};
    bool there = find_in_folder(folder, &f) == STINT_OK;
    free(f.file);
    return there;
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
    f.specials = join(path, n_folder, "special_tokens_map.json");
    f.template = join(path, n_folder, "chat_template.jinja");
    if (status == STINT_OK) status = open_found(&f, tokenizer);
    free(f.file);
    free(f.merges);
    free(f.config);
    free(f.specials);
    free(f.template);
    return status;
}
