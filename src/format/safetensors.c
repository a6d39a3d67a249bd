// SPDX-License-Identifier: Apache-2.0
// File: u64 n (little-endian), n bytes of JSON, data. The JSON is an object: "__metadata__" (not
// needed) and one member per tensor, name -> {"dtype", "shape", "data_offsets": [begin, end)} with
// offsets counted from the first byte of data. Ranges may leave gaps but may not overlap.
#include "format/safetensors.h"

#include "base/json.h"
#include "base/log.h"
#include "base/size.h"

#include <stdio.h>
#include <string.h>

enum { LENGTH_BYTES = 8, HEADER_MAX_BYTES = 100 * 1000 * 1000 };

struct data {
    const unsigned char *bytes;
    size_t n;
};

// A non-negative integer of `array`, which may be NULL or no array.
static bool item_u64(const json_t *array, size_t i, uint64_t *out) {
    const json_t *item = json_array_get(array, i);
    if (!json_is_integer(item) || json_integer_value(item) < 0) return false;
    *out = (uint64_t)json_integer_value(item);
    return true;
}

static stint_status read_range(const char *name, const json_t *member, const struct data *data,
                               struct st_tensor *tensor) {
    const json_t *offsets = json_object_get(member, "data_offsets");
    uint64_t begin = 0, end = 0;
    if (json_array_size(offsets) != 2 || !item_u64(offsets, 0, &begin) ||
        !item_u64(offsets, 1, &end))
        return st_fail(STINT_E_FORMAT, "tensor '%.99s': 'data_offsets' is not [begin, end]", name);
    if (begin > end)
        return st_fail(STINT_E_FORMAT, "tensor '%.99s': begins at %llu, after its end at %llu",
                       name, (unsigned long long)begin, (unsigned long long)end);
    if (end > data->n)
        return st_fail(STINT_E_FORMAT,
                       "tensor '%.99s': ends at byte %llu of the data, the file has %zu: is it "
                       "cut short?",
                       name, (unsigned long long)end, data->n);
    tensor->data = begin < data->n ? data->bytes + begin : NULL;
    tensor->bytes = end - begin;
    return STINT_OK;
}

// Sets *why where the shape is valid but not one that stint can use.
static stint_status read_shape(const char *name, const json_t *member, struct st_tensor *tensor,
                               const char **why) {
    const json_t *shape = json_object_get(member, "shape");
    if (!json_is_array(shape))
        return st_fail(STINT_E_FORMAT, "tensor '%.99s': 'shape' is not a list", name);
    size_t n = json_array_size(shape);
    for (size_t d = 0; d < n; d++) {
        uint64_t dim;
        if (!item_u64(shape, d, &dim))
            return st_fail(STINT_E_FORMAT, "tensor '%.99s': dimension %zu is not a size", name, d);
        if (dim == 0) *why = "a dimension is 0: it holds nothing";
        if (d < ST_MAX_DIMS) tensor->dims[d] = dim;
    }
    if (n > ST_MAX_DIMS) *why = "has more than 4 dimensions, which stint cannot use";
    tensor->n_dims = (uint32_t)st_min(n, ST_MAX_DIMS);
    return STINT_OK;
}

static stint_status read_tensor(const char *name, const json_t *member, const struct data *data,
                                struct st_tensors *tensors) {
    struct st_tensor tensor = {.name = name};
    const char *why = NULL;
    char text[128];
    bool of_bytes = false;
    const json_t *dtype = json_object_get(member, "dtype");
    if (!json_is_string(dtype))
        return st_fail(STINT_E_FORMAT, "tensor '%.99s': 'dtype' is not a string", name);
    ST_TRY(read_range(name, member, data, &tensor));
    ST_TRY(read_shape(name, member, &tensor, &why));
    if (!st_dtype_from_safetensors(json_string_value(dtype), &tensor.dtype)) {
        snprintf(text, sizeof text, "its type is %.16s, stint reads F32, F16 and BF16",
                 json_string_value(dtype));
        of_bytes = !why && strcmp(json_string_value(dtype), "U8") == 0;
        why = text;
    }
    if (!why) return st_tensors_add(tensors, &tensor);
    st_log(STINT_LOG_DEBUG, "tensor '%.99s' is not read: %s", name, why);
    return of_bytes ? st_tensors_set_bytes_aside(tensors, &tensor, why)
                    : st_tensors_set_aside(tensors, name, why);
}

static stint_status read_members(const json_t *header, const struct data *data,
                                 struct st_tensors *tensors) {
    const char *name;
    json_t *member;
    size_t first = st_tensors_count(tensors);
    if (!json_is_object(header)) return st_fail(STINT_E_FORMAT, "the header is not a JSON object");
    json_object_foreach((json_t *)header, name, member) { // the macro wants it without const
        if (strcmp(name, "__metadata__") == 0) continue;
        if (!json_is_object(member))
            return st_fail(STINT_E_FORMAT, "tensor '%.99s': is not described by an object", name);
        ST_TRY(read_tensor(name, member, data, tensors));
    }
    return st_tensors_check_overlap(tensors, first);
}

static stint_status read_file(const struct st_map *map, struct st_tensors *tensors) {
    uint64_t length;
    if (map->bytes < LENGTH_BYTES)
        return st_fail(STINT_E_FORMAT, "%zu bytes are no safetensors file", map->bytes);
    memcpy(&length, map->data, sizeof length);
    if (length > map->bytes - LENGTH_BYTES)
        return st_fail(STINT_E_FORMAT,
                       "the header takes %llu bytes, the file has %zu: is it cut short?",
                       (unsigned long long)length, map->bytes);
    if (length > HEADER_MAX_BYTES)
        return st_fail(STINT_E_FORMAT, "the header takes %llu bytes, at most %d are allowed",
                       (unsigned long long)length, HEADER_MAX_BYTES);
    const unsigned char *text = map->data + LENGTH_BYTES;
    struct data data = {text + length, map->bytes - LENGTH_BYTES - length};
    json_t *header = NULL;
    ST_TRY(st_json_parse("header", text, length, &header));
    stint_status status = read_members(header, &data, tensors);
    json_decref(header);
    return status;
}

stint_status st_safetensors_read(const char *name, const struct st_map *map,
                                 struct st_tensors *tensors) {
    stint_status status = read_file(map, tensors);
    return status == STINT_OK ? STINT_OK : st_fail_prefix("%s: ", name);
}
