// SPDX-License-Identifier: Apache-2.0
// Reads the header of a GGUF file:
//   "GGUF", u32 version, u64 n_tensors, u64 n_keys,
//   n_keys times    string key, u32 type, value
//   n_tensors times string name, u32 n_dims, u64 dims[n_dims] innermost first, u32 type, u64 offset
//   padding to general.alignment (32), then the data; offsets count from there.
// A string is u64 bytes + bytes, an array is u32 type, u64 count, values. Every read goes through a
// cursor that cannot pass the end of the file, so that no count is trusted before its bytes are
// there.
#include "format/gguf_kv.h"

#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAGIC_BYTES = 4,
    KEY_MIN_BYTES = 8 + 1 + 4 + 1,            // the smallest entry: key, type, value
    TENSOR_MIN_BYTES = 8 + 1 + 4 + 8 + 4 + 8, // name, n_dims, one dim, type, offset
    KEY_MAX_BYTES = 65535,
    ALIGNMENT_DEFAULT = 32,
    ALIGNMENT_MAX = 1 << 20,
};

struct cursor {
    const unsigned char *at, *end;
};

struct file {
    const struct st_map *map;
    struct st_tensors *tensors; // NULL: vocabulary only
    struct st_gguf *gguf;
    size_t data_start, alignment;
};

static size_t bytes_left(const struct cursor *c) {
    return (size_t)(c->end - c->at);
}

static stint_status take(struct cursor *c, void *out, size_t bytes, const char *what) {
    if (bytes > bytes_left(c))
        return st_fail(STINT_E_FORMAT, "the file ends inside %s: is it cut short?", what);
    memcpy(out, c->at, bytes);
    c->at += bytes;
    return STINT_OK;
}

static stint_status take_string(struct cursor *c, struct st_gguf_string *out, const char *what) {
    uint64_t bytes = 0;
    ST_TRY(take(c, &bytes, sizeof bytes, what));
    if (bytes > bytes_left(c))
        return st_fail(STINT_E_FORMAT, "%s has %llu bytes, only %zu are left in the file", what,
                       (unsigned long long)bytes, bytes_left(c));
    *out = (struct st_gguf_string){(const char *)c->at, (size_t)bytes};
    c->at += bytes;
    return STINT_OK;
}

// A key or a tensor's name: not empty, not too long, no byte 0 in it.
static stint_status take_name(struct cursor *c, size_t max, struct st_gguf_string *out,
                              const char *what) {
    ST_TRY(take_string(c, out, what));
    if (out->bytes == 0) return st_fail(STINT_E_FORMAT, "%s is empty", what);
    if (out->bytes > max)
        return st_fail(STINT_E_FORMAT, "%s has %zu bytes, at most %zu are allowed", what,
                       out->bytes, max);
    if (memchr(out->data, 0, out->bytes)) return st_fail(STINT_E_FORMAT, "%s holds a byte 0", what);
    return STINT_OK;
}

static stint_status take_type(struct cursor *c, enum st_gguf_type *out) {
    uint32_t type = 0;
    ST_TRY(take(c, &type, sizeof type, "a type"));
    if (type >= ST_GGUF_N_TYPES)
        return st_fail(STINT_E_FORMAT, "type %u is not known, the last is %d", type,
                       ST_GGUF_N_TYPES - 1);
    *out = (enum st_gguf_type)type;
    return STINT_OK;
}

static stint_status take_array(struct cursor *c, struct st_gguf_entry *entry) {
    uint64_t count = 0;
    ST_TRY(take_type(c, &entry->element));
    ST_TRY(take(c, &count, sizeof count, "an array's length"));
    if (entry->element == ST_GGUF_ARRAY)
        return st_fail(STINT_E_UNSUPPORTED, "arrays in arrays are not supported");
    bool strings = entry->element == ST_GGUF_STRING;
    size_t min = strings ? sizeof(uint64_t) : st_gguf_type_traits(entry->element)->bytes;
    if (count > bytes_left(c) / min)
        return st_fail(STINT_E_FORMAT, "an array of %llu %s, only %zu bytes are left in the file",
                       (unsigned long long)count, st_gguf_type_traits(entry->element)->name,
                       bytes_left(c));
    entry->data = c->at;
    entry->count = count;
    if (!strings) c->at += count * min;
    for (uint64_t i = 0; strings && i < count; i++) {
        struct st_gguf_string string;
        ST_TRY(take_string(c, &string, "a string of an array"));
    }
    return STINT_OK;
}

static stint_status take_value(struct cursor *c, struct st_gguf_entry *entry) {
    ST_TRY(take_type(c, &entry->type));
    if (entry->type == ST_GGUF_ARRAY) return take_array(c, entry);
    if (entry->type == ST_GGUF_STRING) {
        struct st_gguf_string string;
        ST_TRY(take_string(c, &string, "the string"));
        entry->data = (const unsigned char *)string.data;
        entry->count = string.bytes;
        return STINT_OK;
    }
    unsigned char value[8];
    entry->data = c->at;
    entry->count = 1;
    ST_TRY(take(c, value, st_gguf_type_traits(entry->type)->bytes, "the value"));
    if (entry->type == ST_GGUF_BOOL && value[0] > 1)
        return st_fail(STINT_E_FORMAT, "%u is not a bool", value[0]);
    return STINT_OK;
}

static stint_status read_keys(struct cursor *c, uint64_t count, struct st_gguf *gguf) {
    if (count > bytes_left(c) / KEY_MIN_BYTES)
        return st_fail(STINT_E_FORMAT, "%llu metadata keys do not fit in a file of %zu bytes more",
                       (unsigned long long)count, bytes_left(c));
    for (uint64_t i = 0; i < count; i++) {
        struct st_gguf_entry entry = {0};
        ST_TRY(take_name(c, KEY_MAX_BYTES, &entry.key, "a metadata key"));
        if (take_value(c, &entry) != STINT_OK)
            return st_fail_prefix("metadata '%.*s': ", (int)st_min(entry.key.bytes, 99),
                                  entry.key.data);
        ST_TRY(st_gguf_kv_add(gguf, &entry));
    }
    return st_gguf_kv_sort(gguf);
}

static stint_status read_alignment(const struct st_gguf *gguf, size_t *alignment) {
    static const char key[] = "general.alignment";
    const struct st_gguf_entry *entry = st_gguf_kv_find(gguf, key);
    uint64_t value = ALIGNMENT_DEFAULT;
    if (entry && entry->type != ST_GGUF_U32)
        return st_fail(STINT_E_FORMAT, "metadata '%s': is of type %s, expected u32", key,
                       st_gguf_type_traits(entry->type)->name);
    ST_TRY(st_gguf_u64(gguf, key, UINT32_MAX, &value));
    if (value < 8 || value > ALIGNMENT_MAX || (value & (value - 1)) != 0)
        return st_fail(STINT_E_FORMAT, "metadata '%s': %llu is not a power of two in 8..%d", key,
                       (unsigned long long)value, ALIGNMENT_MAX);
    *alignment = (size_t)value;
    return STINT_OK;
}

struct info {
    char name[ST_MAX_NAME_BYTES + 1];
    uint64_t dims[ST_MAX_DIMS]; // innermost first, as in the file
    uint64_t offset;
    uint32_t n_dims, type;
};

static stint_status take_info(struct cursor *c, size_t alignment, struct info *info) {
    struct st_gguf_string name;
    ST_TRY(take_name(c, ST_MAX_NAME_BYTES, &name, "a tensor's name"));
    memcpy(info->name, name.data, name.bytes);
    info->name[name.bytes] = 0;
    ST_TRY(take(c, &info->n_dims, sizeof info->n_dims, "a tensor's description"));
    if (info->n_dims == 0 || info->n_dims > ST_MAX_DIMS)
        return st_fail(STINT_E_FORMAT, "tensor '%s': %u dimensions, expected 1..%d", info->name,
                       info->n_dims, ST_MAX_DIMS);
    ST_TRY(take(c, info->dims, info->n_dims * sizeof *info->dims, "a tensor's description"));
    ST_TRY(take(c, &info->type, sizeof info->type, "a tensor's description"));
    ST_TRY(take(c, &info->offset, sizeof info->offset, "a tensor's description"));
    if (info->offset % alignment != 0)
        return st_fail(STINT_E_FORMAT, "tensor '%s': offset %llu is not a multiple of %zu",
                       info->name, (unsigned long long)info->offset, alignment);
    return STINT_OK;
}

static stint_status unsupported_type(const struct info *info) {
    char known[256] = "";
    for (int t = 0; t < ST_N_DTYPES; t++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", t ? ", " : "",
                 st_dtype_traits((enum st_dtype)t)->name);
    }
    return st_fail(STINT_E_UNSUPPORTED, "tensor '%s': type %u is not supported; supported are %s",
                   info->name, info->type, known);
}

// Microsoft's type for ternary weights: 128 elements in 32 bytes, and one scale behind all of them.
static stint_status measure_i2_s(struct st_tensor *tensor) {
    size_t n = 1;
    for (uint32_t d = 0; d < tensor->n_dims; d++)
        if (!st_size_mul(n, tensor->dims[d], &n)) n = 0;
    if (n == 0 || n % ST_I2_S_ITEMS != 0)
        return st_fail(STINT_E_FORMAT, "tensor '%s': its shape is no whole number of blocks of %d",
                       tensor->name, ST_I2_S_ITEMS);
    tensor->bytes = n / ST_I2_S_ITEMS * ST_I2_S_BYTES + ST_I2_S_TAIL;
    tensor->n_dims = 1;
    tensor->dims[0] = tensor->bytes;
    return STINT_OK;
}

static stint_status add_tensor(const struct file *file, const struct info *info) {
    struct st_tensor tensor = {.name = info->name, .n_dims = info->n_dims};
    bool i2_s = info->type == ST_I2_S_GGUF;
    if (!i2_s && !st_dtype_from_gguf(info->type, &tensor.dtype)) return unsupported_type(info);
    for (uint32_t d = 0; d < info->n_dims; d++) tensor.dims[d] = info->dims[info->n_dims - 1 - d];
    ST_TRY(i2_s ? measure_i2_s(&tensor) : st_tensor_measure(&tensor, &tensor.bytes));
    size_t file_bytes = file->map->bytes, start, end;
    if (!st_size_add(file->data_start, info->offset, &start) ||
        !st_size_add(start, tensor.bytes, &end))
        return st_fail(STINT_E_FORMAT, "tensor '%s': offset %llu and size %zu wrap", info->name,
                       (unsigned long long)info->offset, tensor.bytes);
    if (end > file_bytes)
        return st_fail(STINT_E_FORMAT,
                       "tensor '%s': ends at byte %zu, the file has %zu: is it cut short?",
                       info->name, end, file_bytes);
    tensor.data = file->map->data + start;
    if (i2_s)
        return st_tensors_set_bytes_aside(file->tensors, &tensor,
                                          "its type I2_S can be used for linears of layers alone");
    return st_tensors_add(file->tensors, &tensor);
}

// Walks the descriptions twice: where the data starts is known only after the last one.
static stint_status read_tensors(struct cursor *c, uint64_t count, struct file *file) {
    if (count > bytes_left(c) / TENSOR_MIN_BYTES)
        return st_fail(STINT_E_FORMAT, "%llu tensors do not fit in a file of %zu bytes more",
                       (unsigned long long)count, bytes_left(c));
    struct cursor again = *c;
    struct info info;
    for (uint64_t i = 0; i < count; i++) ST_TRY(take_info(c, file->alignment, &info));
    if (!file->tensors) return STINT_OK;
    size_t first = st_tensors_count(file->tensors);
    file->data_start = st_round_up((size_t)(c->at - file->map->data), file->alignment);
    for (uint64_t i = 0; i < count; i++) {
        ST_TRY(take_info(&again, file->alignment, &info));
        ST_TRY(add_tensor(file, &info));
    }
    return st_tensors_check_overlap(file->tensors, first);
}

static stint_status check_version(uint32_t version) {
    if (version == 2 || version == 3) return STINT_OK;
    if (version == 1)
        return st_fail(STINT_E_UNSUPPORTED, "GGUF version 1 is not supported, only 2 and 3: "
                                            "convert the model again");
    if (version != 0 && (version & 0xffff) == 0)
        return st_fail(STINT_E_UNSUPPORTED, "a big-endian GGUF file: convert the model again for "
                                            "little-endian machines");
    return st_fail(STINT_E_UNSUPPORTED, "GGUF version %u is not supported, only 2 and 3", version);
}

static stint_status read_file(struct file *file) {
    struct cursor c = {file->map->data, file->map->data};
    char magic[MAGIC_BYTES];
    uint32_t version = 0;
    uint64_t n_tensors = 0, n_keys = 0;
    if (file->map->bytes == 0) return st_fail(STINT_E_FORMAT, "the file is empty");
    c.end += file->map->bytes;
    if (bytes_left(&c) < MAGIC_BYTES || memcmp(c.at, "GGUF", MAGIC_BYTES) != 0)
        return st_fail(STINT_E_FORMAT, "is not a GGUF file: it does not begin with 'GGUF'");
    ST_TRY(take(&c, magic, sizeof magic, "the header"));
    ST_TRY(take(&c, &version, sizeof version, "the header"));
    ST_TRY(check_version(version));
    ST_TRY(take(&c, &n_tensors, sizeof n_tensors, "the header"));
    ST_TRY(take(&c, &n_keys, sizeof n_keys, "the header"));
    file->gguf->bytes = c.at;
    ST_TRY(read_keys(&c, n_keys, file->gguf));
    file->gguf->n_bytes = (size_t)(c.at - file->gguf->bytes);
    ST_TRY(read_alignment(file->gguf, &file->alignment));
    return read_tensors(&c, n_tensors, file);
}

stint_status st_gguf_metadata(const struct st_gguf *gguf, void **data, size_t *bytes) {
    const struct {
        char magic[MAGIC_BYTES];
        uint32_t version;
        uint64_t n_tensors, n_keys;
    } header = {{'G', 'G', 'U', 'F'}, 3, 0, gguf->count};
    unsigned char *out = malloc(sizeof header + gguf->n_bytes);
    if (!out) return st_fail(STINT_E_NOMEM, "no memory for a GGUF file's metadata");
    memcpy(out, &header, sizeof header);
    memcpy(out + sizeof header, gguf->bytes, gguf->n_bytes);
    *data = out;
    *bytes = sizeof header + gguf->n_bytes;
    return STINT_OK;
}

stint_status st_gguf_open(const char *name, const struct st_map *map, struct st_tensors *tensors,
                          struct st_gguf **gguf) {
    struct file file = {.map = map, .tensors = tensors, .gguf = calloc(1, sizeof(struct st_gguf))};
    stint_status status =
        file.gguf ? read_file(&file) : st_fail(STINT_E_NOMEM, "no memory for its metadata");
    if (status != STINT_OK) {
        st_gguf_close(file.gguf);
        return st_fail_prefix("%s: ", name);
    }
    *gguf = file.gguf;
    return STINT_OK;
}
