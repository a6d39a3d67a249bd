// SPDX-License-Identifier: Apache-2.0
// Opens a checkpoint by what it is, not by what it is called: a folder is a Hugging Face one, a
// file must begin as GGUF or a package does. Splits (an index with shards, or
// "-00001-of-00003.gguf") end in one table of tensors. Everything hangs on a local checkpoint that
// one close releases on failure.
#include "format/checkpoint.h"

#include "base/size.h"
#include "format/files.h"
#include "format/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static const char single_name[] = "model.safetensors";
static const char index_name[] = "model.safetensors.index.json";

static stint_status no_memory(const char *path) {
    return st_fail(STINT_E_NOMEM, "%s: no memory to open it", path);
}

// NULL without memory; free() it.
static char *join(const char *folder, const char *name) {
    char *path;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static bool is_there(const char *folder, const char *name) {
    return st_files_has(&(struct st_files){folder, NULL}, name);
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static stint_status add_file(struct st_checkpoint *c, const char *path) {
    struct st_map *maps = realloc(c->maps, (c->n_maps + 1) * sizeof *maps);
    if (maps) c->maps = maps;
    struct st_loader_file *files = realloc(c->files, (c->n_maps + 1) * sizeof *files);
    if (files) c->files = files;
    struct timespec *written = realloc(c->written, (c->n_maps + 1) * sizeof *written);
    if (written) c->written = written;
    char *name = strdup(path);
    struct stat info = {0};
    stint_status status = maps && files && written && name ? STINT_OK : no_memory(path);
    if (status == STINT_OK)
        status = st_map_open_file(path, &maps[c->n_maps], &files[c->n_maps].file);
    if (status != STINT_OK) {
        free(name);
        return status;
    }
    fstat(files[c->n_maps].file, &info);
    written[c->n_maps] = info.st_mtim;
    files[c->n_maps++].name = name;
    return STINT_OK;
}

// ---- Hugging Face folders

static stint_status read_object(const struct st_files *files, const char *name, json_t **out) {
    struct st_file file;
    json_t *json = NULL;
    ST_TRY(st_files_open(files, name, &file));
    stint_status status = st_json_parse_python(file.name, file.map.data, file.map.bytes, &json);
    if (status == STINT_OK && !json_is_object(json)) {
        status = st_fail(STINT_E_FORMAT, "%s: is not a JSON object", file.name);
        json_decref(json);
    }
    st_file_close(&file);
    if (status == STINT_OK) *out = json;
    return status;
}

static stint_status hash_file(const struct st_files *files, const char *name, uint64_t *hash) {
    struct st_file file;
    ST_TRY(st_files_open(files, name, &file));
    *hash = XXH3_64bits(file.map.data, file.map.bytes);
    st_file_close(&file);
    return STINT_OK;
}

static stint_status read_configs(struct st_checkpoint *c, const struct st_files *files) {
    static const char config[] = "config.json", generation[] = "generation_config.json";
    c->source = ST_SOURCE_HF;
    ST_TRY(read_object(files, config, &c->config));
    ST_TRY(hash_file(files, config, &c->config_hash));
    return st_files_has(files, generation) ? read_object(files, generation, &c->generation_config)
                                           : STINT_OK;
}

static stint_status read_shard(struct st_checkpoint *c, const char *folder, const char *name) {
    char *path = join(folder, name);
    if (!path) return no_memory(folder);
    stint_status status = add_file(c, path);
    if (status == STINT_OK) status = st_safetensors_read(path, &c->maps[c->n_maps - 1], c->tensors);
    free(path);
    return status;
}

// The index names files of its own folder, nothing else.
static bool is_plain_name(const json_t *value) {
    const char *name = json_string_value(value);
    return name && *name && strlen(name) == json_string_length(value) && !strpbrk(name, "/\\") &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

// Sets `shards`, an object, to shard name -> index of its map. All missing shards go in one text.
static stint_status list_shards(const char *folder, json_t *weights, json_t *shards) {
    const char *tensor;
    json_t *value;
    char missing[512] = "";
    size_t n_missing = 0, used = 0;
    json_object_foreach(weights, tensor, value) {
        if (!is_plain_name(value))
            return st_fail(STINT_E_FORMAT, "tensor '%.99s': its shard is not a file of the folder",
                           tensor);
        const char *shard = json_string_value(value);
        if (json_object_get(shards, shard)) continue;
        if (json_object_set_new(shards, shard, json_integer(0)) != 0) return no_memory(folder);
        if (is_there(folder, shard)) continue;
        used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%s",
                                 n_missing ? ", " : "", shard);
        used = st_min(used, sizeof missing - 1);
        n_missing++;
    }
    if (n_missing == 0) return STINT_OK;
    return st_fail(STINT_E_IO, "%zu of %zu shards are missing in %s: %s", n_missing,
                   json_object_size(shards), folder, missing);
}

static bool is_within(const struct st_map *map, const struct st_tensor *tensor) {
    uintptr_t at = (uintptr_t)tensor->data, base = (uintptr_t)map->data;
    return at >= base && at - base < map->bytes;
}

// Every tensor must lie where the index says.
static stint_status check_index(const struct st_checkpoint *c, json_t *weights, json_t *shards) {
    const char *name;
    json_t *value;
    json_object_foreach(weights, name, value) {
        const char *shard = json_string_value(value);
        json_int_t i = json_integer_value(json_object_get(shards, shard));
        const struct st_tensor *tensor = st_tensors_find(c->tensors, name);
        if (!tensor && st_tensors_why_aside(c->tensors, name)) continue;
        if (!tensor || !is_within(&c->maps[i], tensor))
            return st_fail(STINT_E_FORMAT, "tensor '%.99s' is not in '%.99s' as the index says",
                           name, shard);
    }
    return STINT_OK;
}

static stint_status read_weight_map(struct st_checkpoint *c, const char *folder, json_t *weights,
                                    json_t *shards) {
    const char *shard;
    json_t *value;
    if (json_object_size(weights) == 0)
        return st_fail(STINT_E_FORMAT, "'weight_map' is not an object with tensors");
    ST_TRY(list_shards(folder, weights, shards));
    json_object_foreach(shards, shard, value) {
        json_integer_set(value, (json_int_t)c->n_maps);
        ST_TRY(read_shard(c, folder, shard));
    }
    return check_index(c, weights, shards);
}

static stint_status read_index(struct st_checkpoint *c, const char *folder) {
    json_t *index = NULL;
    ST_TRY(read_object(&(struct st_files){folder, NULL}, index_name, &index));
    json_t *shards = json_object();
    stint_status status =
        shards ? read_weight_map(c, folder, json_object_get(index, "weight_map"), shards)
               : no_memory(folder);
    json_decref(shards);
    json_decref(index);
    return status == STINT_OK ? STINT_OK : st_fail_prefix("%s/%s: ", folder, index_name);
}

// What a folder without the usual names holds: one name of each kind, the first in the alphabet.
struct listing {
    char safetensors[256], gguf[256], pytorch[256];
    size_t n_safetensors;
};

static void keep_first(char *kept, size_t bytes, const char *name) {
    if (!*kept || strcmp(name, kept) < 0) snprintf(kept, bytes, "%s", name);
}

static stint_status list_folder(const char *folder, struct listing *out) {
    DIR *dir = opendir(folder);
    if (!dir) return st_fail(STINT_E_IO, "%s: %s", folder, strerror(errno));
    memset(out, 0, sizeof *out);
    for (struct dirent *file; (file = readdir(dir));) {
        const char *name = file->d_name;
        if (ends_with(name, ".safetensors")) {
            keep_first(out->safetensors, sizeof out->safetensors, name);
            out->n_safetensors++;
        } else if (ends_with(name, ".gguf")) {
            keep_first(out->gguf, sizeof out->gguf, name);
        } else if (ends_with(name, ".bin") || ends_with(name, ".pt") || ends_with(name, ".pth")) {
            keep_first(out->pytorch, sizeof out->pytorch, name);
        }
    }
    closedir(dir);
    return STINT_OK;
}

static stint_status read_any(struct st_checkpoint *c, const char *folder) {
    struct listing files;
    ST_TRY(list_folder(folder, &files));
    if (files.n_safetensors == 1) return read_shard(c, folder, files.safetensors);
    if (files.n_safetensors > 1)
        return st_fail(STINT_E_IO, "%s: %zu .safetensors files but no %s that joins them", folder,
                       files.n_safetensors, index_name);
    if (*files.pytorch)
        return st_fail(STINT_E_UNSUPPORTED,
                       "%s: has PyTorch weights only ('%s'): convert them to safetensors", folder,
                       files.pytorch);
    return st_fail(STINT_E_IO, "%s: no weights: expected %s or %s", folder, single_name,
                   index_name);
}

static stint_status no_config(const char *folder) {
    struct listing files;
    ST_TRY(list_folder(folder, &files));
    if (*files.gguf)
        return st_fail(STINT_E_IO, "%s: no config.json; to open the GGUF file give %s/%s", folder,
                       folder, files.gguf);
    return st_fail(STINT_E_IO, "%s: no config.json: this is not a Hugging Face folder", folder);
}

static stint_status open_folder(struct st_checkpoint *c, const char *folder) {
    if (!is_there(folder, "config.json")) return no_config(folder);
    ST_TRY(read_configs(c, &(struct st_files){folder, NULL}));
    if (is_there(folder, single_name)) return read_shard(c, folder, single_name);
    if (is_there(folder, index_name)) return read_index(c, folder);
    return read_any(c, folder);
}

// ---- GGUF files

static stint_status read_split(const struct st_gguf *gguf, uint64_t *number, uint64_t *count) {
    *number = *count = 0;
    ST_TRY(st_gguf_u64(gguf, "split.no", UINT16_MAX, number));
    return st_gguf_u64(gguf, "split.count", UINT16_MAX, count);
}

static stint_status read_split_file(struct st_checkpoint *c, const char *path, uint64_t number,
                                    uint64_t count) {
    struct st_gguf *gguf = NULL;
    uint64_t found = 0, total = 0;
    ST_TRY(add_file(c, path));
    ST_TRY(st_gguf_open(path, &c->maps[c->n_maps - 1], c->tensors, &gguf));
    stint_status status = read_split(gguf, &found, &total);
    st_gguf_close(gguf);
    if (status != STINT_OK) return st_fail_prefix("%s: ", path);
    if (found == number && total == count) return STINT_OK;
    return st_fail(STINT_E_FORMAT, "%s: says it is part %llu of %llu, expected %llu of %llu", path,
                   (unsigned long long)found + 1, (unsigned long long)total,
                   (unsigned long long)number + 1, (unsigned long long)count);
}

// The other parts of a split file lie beside the first: "x-00001-of-00003.gguf". The first one
// holds the metadata of all.
static stint_status read_splits(struct st_checkpoint *c, const char *path) {
    uint64_t number, count, n_tensors = UINT64_MAX;
    char end[64];
    if (read_split(c->gguf, &number, &count) != STINT_OK ||
        st_gguf_u64(c->gguf, "split.tensors.count", INT32_MAX, &n_tensors) != STINT_OK)
        return st_fail_prefix("%s: ", path);
    if (count <= 1) return STINT_OK;
    if (number != 0)
        return st_fail(STINT_E_UNSUPPORTED, "%s: is part %llu of %llu: give the first one", path,
                       (unsigned long long)number + 1, (unsigned long long)count);
    snprintf(end, sizeof end, "-00001-of-%05llu.gguf", (unsigned long long)count);
    if (!ends_with(path, end))
        return st_fail(STINT_E_UNSUPPORTED,
                       "%s: is part 1 of %llu but its name does not end in '%s', so that the "
                       "others cannot be found",
                       path, (unsigned long long)count, end);
    for (uint64_t i = 1; i < count; i++) {
        char *part;
        int stem = (int)(strlen(path) - strlen(end));
        if (asprintf(&part, "%.*s-%05llu-of-%05llu.gguf", stem, path, (unsigned long long)i + 1,
                     (unsigned long long)count) < 0)
            return no_memory(path);
        stint_status status = read_split_file(c, part, i, count);
        free(part);
        if (status != STINT_OK) return status;
    }
    if (n_tensors == UINT64_MAX || n_tensors == st_tensors_count(c->tensors)) return STINT_OK;
    return st_fail(STINT_E_FORMAT, "%s: all parts together have %zu tensors, expected %llu", path,
                   st_tensors_count(c->tensors), (unsigned long long)n_tensors);
}

// ---- packages

static stint_status read_gguf_metadata(struct st_checkpoint *c, const struct st_files *files) {
    struct st_file file;
    ST_TRY(st_files_open(files, ST_PACKAGE_GGUF, &file));
    c->source = ST_SOURCE_GGUF;
    stint_status status = st_gguf_open(file.name, &file.map, NULL, &c->gguf);
    st_file_close(&file);
    return status;
}

static stint_status open_package(struct st_checkpoint *c, const char *path) {
    if (c->lazy)
        ST_TRY(st_package_open_lazy(path, c->maps, c->files->file, &c->package));
    else
        ST_TRY(st_package_open(path, c->maps, &c->package));
    struct st_files files = {path, c->package};
    for (size_t i = 0; i < st_package_count(c->package); i++) {
        const struct st_section *s = st_package_at(c->package, i);
        if (s->type != ST_SECTION_TENSOR) continue;
        struct st_tensor tensor = {.name = s->name,
                                   .data = s->data,
                                   .bytes = s->bytes,
                                   .dtype = s->dtype,
                                   .n_dims = s->n_dims};
        memcpy(tensor.dims, s->dims, sizeof tensor.dims);
        if (st_tensors_add(c->tensors, &tensor) != STINT_OK) return st_fail_prefix("%s: ", path);
    }
    ST_TRY(read_object(&files, ST_PACKAGE_META, &c->meta));
    return st_files_has(&files, ST_PACKAGE_GGUF) ? read_gguf_metadata(c, &files)
                                                 : read_configs(c, &files);
}

// ---- any file

// First bytes of files that people take for models.
static const struct {
    const char *magic, *text;
} others[] = {
    {"PK\003\004", "is a PyTorch file: convert the model to safetensors"},
    {"\x80\002", "is a PyTorch file: convert the model to safetensors"},
    {"ggjt", "is a GGML file from before GGUF: convert the model again"},
    {"tjgg", "is a GGML file from before GGUF: convert the model again"},
    {"lmgg", "is a GGML file from before GGUF: convert the model again"},
    {"version https://git-lfs", "is a Git LFS pointer, not the file: fetch it with git lfs pull"},
};

static bool begins_with(const struct st_map *map, const char *text) {
    size_t n = strlen(text);
    return map->bytes >= n && memcmp(map->data, text, n) == 0;
}

static stint_status not_a_model(const char *path, const struct st_map *map) {
    if (map->bytes == 0) return st_fail(STINT_E_FORMAT, "%s: the file is empty", path);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (begins_with(map, others[i].magic))
            return st_fail(STINT_E_FORMAT, "%s: %s", path, others[i].text);
    if (map->bytes > 8 && map->data[8] == '{')
        return st_fail(STINT_E_FORMAT,
                       "%s: is a safetensors file: give the folder that holds it and config.json",
                       path);
    return st_fail(STINT_E_FORMAT,
                   "%s: is neither a package, nor a GGUF file, nor a folder with config.json and "
                   "safetensors",
                   path);
}

static stint_status open_file(struct st_checkpoint *c, const char *path) {
    ST_TRY(add_file(c, path));
    if (st_package_is(c->maps)) return open_package(c, path);
    c->source = ST_SOURCE_GGUF;
    if (!begins_with(c->maps, "GGUF")) return not_a_model(path, c->maps);
    ST_TRY(st_gguf_open(path, c->maps, c->tensors, &c->gguf));
    return read_splits(c, path);
}

static stint_status open_any(const char *path, bool lazy, struct st_checkpoint *checkpoint) {
    struct st_checkpoint c = {.lazy = lazy};
    struct stat info;
    if (stat(path, &info) != 0) return st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
    c.path = strdup(path);
    stint_status status = c.path ? st_tensors_open(0, &c.tensors) : no_memory(path);
    if (status == STINT_OK)
        status = S_ISDIR(info.st_mode) ? open_folder(&c, path) : open_file(&c, path);
    if (status != STINT_OK) {
        st_checkpoint_close(&c);
        return status;
    }
    *checkpoint = c;
    return STINT_OK;
}

stint_status st_checkpoint_open(const char *path, struct st_checkpoint *checkpoint) {
    return open_any(path, false, checkpoint);
}

stint_status st_checkpoint_open_lazy(const char *path, struct st_checkpoint *checkpoint) {
    return open_any(path, true, checkpoint);
}

void st_checkpoint_close(struct st_checkpoint *checkpoint) {
    st_gguf_close(checkpoint->gguf);
    st_package_close(checkpoint->package);
    free(checkpoint->path);
    st_tensors_close(checkpoint->tensors);
    json_decref(checkpoint->config);
    json_decref(checkpoint->generation_config);
    json_decref(checkpoint->meta);
    for (size_t i = 0; i < checkpoint->n_maps; i++) {
        st_map_close(&checkpoint->maps[i]);
        close(checkpoint->files[i].file);
        free((char *)(uintptr_t)checkpoint->files[i].name);
    }
    free(checkpoint->maps);
    free(checkpoint->files);
    free(checkpoint->written);
    *checkpoint = (struct st_checkpoint){0};
}

bool st_checkpoint_find(const struct st_checkpoint *c, const void *data, size_t bytes,
                        uint32_t *file, uint64_t *offset) {
    for (size_t i = 0; i < c->n_maps; i++) {
        uintptr_t at = (uintptr_t)data - (uintptr_t)c->maps[i].data;
        if ((uintptr_t)data < (uintptr_t)c->maps[i].data || at > c->maps[i].bytes) continue;
        if (bytes > c->maps[i].bytes - at) continue;
        *file = (uint32_t)i;
        *offset = at;
        return true;
    }
    return false;
}

void st_checkpoint_forget(const struct st_checkpoint *c, const void *data, size_t bytes) {
    uint32_t file;
    uint64_t offset;
    if (st_checkpoint_find(c, data, bytes, &file, &offset)) st_map_forget(data, bytes);
}

// Where the system cannot tell, reading will.
const char *st_checkpoint_changed(const struct st_checkpoint *c) {
    for (size_t i = 0; i < c->n_maps; i++) {
        struct stat info;
        const struct timespec *then = &c->written[i];
        if (fstat(c->files[i].file, &info) != 0) continue;
        if ((size_t)info.st_size != c->maps[i].bytes || info.st_mtim.tv_sec != then->tv_sec ||
            info.st_mtim.tv_nsec != then->tv_nsec)
            return c->files[i].name;
    }
    return NULL;
}

stint_status st_checkpoint_check(const struct st_checkpoint *c) {
    const char *changed = st_checkpoint_changed(c);
    return changed ? st_fail(STINT_E_IO, "%s: was written or cut while it was in use", changed)
                   : STINT_OK;
}
