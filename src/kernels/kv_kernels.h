// SPDX-License-Identifier: Apache-2.0
// A struct st_kv_kernel for each type, of the including file's load() and decode(), whose first
// argument is the type and constant here.
#define KV_FUNCTIONS(id, name, bits, scale, mixed)                                                 \
    static void load_##name(const void *rows, size_t n_rows, size_t n, float *to) {                \
        load(ST_KV_##id, rows, n_rows, n, to);                                                     \
    }                                                                                              \
    static void store_##name(const float *x, size_t n, void *row) {                                \
        kv_##name##_store(x, n, row);                                                              \
    }                                                                                              \
    static void decode_##name(const float *q, size_t n_queries, const struct st_kv_rows *rows,     \
                              size_t n_keys, size_t head_dim, float factor, float softcap,         \
                              bool begun, float *scores, struct st_attended *attended,             \
                              float *out) {                                                        \
        decode(ST_KV_##id, q, n_queries, rows, n_keys, head_dim, factor, softcap, begun, scores,   \
               attended, out);                                                                     \
    }
ST_KV_TYPES(KV_FUNCTIONS)
#undef KV_FUNCTIONS

#define KV_KERNEL(id, name, bits, scale, mixed)                                                    \
    [ST_KV_##id] = {.store = store_##name, .load = load_##name, .decode = decode_##name},
