// SPDX-License-Identifier: Apache-2.0
// Finds the file that holds the tokenizer and the files beside it: tokenizer_config.json,
// merges.txt.
#include "tokenizer/load_steps.h"

#include "base/log.h"
#include "tokenizer/added_tokens.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
        ST_TRY(st_tokenizer_add_nfc(t));
        pattern = qwen2_pattern;
    }
    if (prefix)
        ST_TRY(
            st_tokenizer_add_pretokenizer(t, (struct st_pretokenizer){.kind = ST_PRETOKENIZE_PREFIX,
                                                                      .prefix = ST_PREFIX_ALWAYS}));
    return st_tokenizer_add_split(t, pattern, strlen(pattern), ST_SPLIT_ISOLATED, false);
}

// One pair per line; a first line "#version" is a comment.
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
            if (!space) return st_fail(STINT_E_FORMAT, "merge %u is not a pair", rank);
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
        const char *end = "<|endoftext|>"; // the default of this tokenizer class
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
    // Added tokens come from another file, so there can be a few more than this file has bytes.
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

// ---- files

static stint_status open_vocab(const struct st_files *files, const struct st_file *vocab,
                               const json_t *config, struct stint_tokenizer **t) {
    struct st_file merges;
    if (!st_files_has(files, "merges.txt"))
        return st_fail(STINT_E_IO, "%s: merges.txt is missing beside it", vocab->name);
    ST_TRY(st_files_open(files, "merges.txt", &merges));
    stint_status status = st_tokenizer_from_vocab(vocab->name, &vocab->map, &merges.map, config, t);
    st_file_close(&merges);
    return status;
}

static stint_status open_gguf(const struct st_file *file, struct stint_tokenizer **t) {
    struct st_gguf *gguf = NULL;
    ST_TRY(st_gguf_open(file->name, &file->map, NULL, &gguf));
    stint_status status = st_tokenizer_from_gguf(gguf, t);
    st_gguf_close(gguf);
    return status == STINT_OK ? status : st_fail_prefix("%s: ", file->name);
}

// The content says what it is: GGUF's magic, JSON with a "model", a plain object, else
// SentencePiece.
static stint_status open_vocabulary(const struct st_files *files, const char *name,
                                    const struct st_file *file, const json_t *config,
                                    struct stint_tokenizer **t) {
    const struct st_map *map = &file->map;
    size_t first = 0;
    if (map->bytes == 0) return st_fail(STINT_E_FORMAT, "%s: the file is empty", file->name);
    if (map->bytes >= 4 && memcmp(map->data, "GGUF", 4) == 0) return open_gguf(file, t);
    while (first < map->bytes && strchr(" \t\r\n", map->data[first])) first++;
    if (first == map->bytes || map->data[first] != '{')
        return st_tokenizer_from_sentencepiece(file->name, map->data, map->bytes, t);
    if (strcmp(name, "vocab.json") == 0) return open_vocab(files, file, config, t);
    return st_tokenizer_from_json(file->name, map->data, map->bytes, t);
}

// Newer checkpoints keep the template in a file of its own.
static stint_status read_template_file(const struct st_files *files, struct stint_tokenizer *t) {
    struct st_file file;
    if (t->chat_template || !st_files_has(files, "chat_template.jinja")) return STINT_OK;
    ST_TRY(st_files_open(files, "chat_template.jinja", &file));
    size_t n = file.map.bytes;
    t->chat_template = n ? strndup((const char *)file.map.data, n) : NULL;
    st_file_close(&file);
    return n && !t->chat_template ? st_fail(STINT_E_NOMEM, "no memory for a chat template")
                                  : STINT_OK;
}

static stint_status apply(const struct st_files *files, const char *name, const json_t *json,
                          struct stint_tokenizer *t) {
    stint_status status = json ? st_tokenizer_apply_config(t, json) : STINT_OK;
    if (status == STINT_OK) return STINT_OK;
    return st_fail_prefix("%s%s%s: ", files->path, files->package ? ": " : "/", name);
}

// Reads the vocabulary in `name` and the files beside it.
static stint_status open_from(const struct st_files *files, const char *name,
                              struct stint_tokenizer **tokenizer) {
    static const char config_name[] = "tokenizer_config.json";
    static const char specials_name[] = "special_tokens_map.json";
    struct st_file file;
    json_t *config = NULL, *specials = NULL;
    struct stint_tokenizer *t = NULL;
    ST_TRY(st_files_open(files, name, &file));
    stint_status status = st_files_json(files, config_name, &config);
    if (status == STINT_OK) status = st_files_json(files, specials_name, &specials);
    if (status == STINT_OK) status = open_vocabulary(files, name, &file, config, &t);
    if (status == STINT_OK) status = apply(files, specials_name, specials, t);
    if (status == STINT_OK) status = apply(files, config_name, config, t);
    if (status == STINT_OK) status = read_template_file(files, t);
    st_file_close(&file);
    json_decref(config);
    json_decref(specials);
    if (status != STINT_OK) {
        st_tokenizer_close(t);
        return status;
    }
    *tokenizer = t;
    return STINT_OK;
}

// NULL: none of them.
static const char *find_vocabulary(const struct st_files *files) {
    static const char *const names[] = {ST_PACKAGE_GGUF, "tokenizer.json", "vocab.json",
                                        "tokenizer.model"};
    for (size_t i = files->package ? 0 : 1; i < sizeof names / sizeof *names; i++)
        if (st_files_has(files, names[i])) return names[i];
    return NULL;
}

bool st_tokenizer_is_there(const struct st_files *files) {
    return find_vocabulary(files) != NULL;
}

stint_status st_tokenizer_from_files(const struct st_files *files,
                                     struct stint_tokenizer **tokenizer) {
    const char *name = find_vocabulary(files);
    if (name) return open_from(files, name, tokenizer);
    return st_fail(STINT_E_IO,
                   "%s: no tokenizer: looked for tokenizer.json, vocab.json and tokenizer.model",
                   files->path);
}

// A package, or a vocabulary file with others beside it.
static stint_status open_file(const char *path, struct stint_tokenizer **tokenizer) {
    const char *slash = strrchr(path, '/');
    struct st_map map;
    ST_TRY(st_map_open(path, &map));
    if (st_package_is(&map)) {
        struct st_package *package = NULL;
        stint_status status = st_package_open(path, &map, &package);
        if (status == STINT_OK)
            status = st_tokenizer_from_files(&(struct st_files){path, package}, tokenizer);
        st_package_close(package);
        st_map_close(&map);
        return status;
    }
    st_map_close(&map);
    // "/x" is in the folder "/", which join() makes from "/." and not from "".
    char *folder = slash == path ? strdup("/.") : strndup(path, slash ? (size_t)(slash - path) : 0);
    if (!folder) return st_fail(STINT_E_NOMEM, "%s: no memory to open it", path);
    stint_status status =
        open_from(&(struct st_files){folder, NULL}, slash ? slash + 1 : path, tokenizer);
    free(folder);
    return status;
}

stint_status st_tokenizer_open(const char *path, struct stint_tokenizer **tokenizer) {
    struct stat info;
    if (stat(path, &info) != 0) return st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode)) return open_file(path, tokenizer);
    return st_tokenizer_from_files(&(struct st_files){path, NULL}, tokenizer);
}
