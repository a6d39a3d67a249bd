// SPDX-License-Identifier: Apache-2.0
#include "model/fingerprint.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SAMPLES = 8, SAMPLE_BYTES = 2048, EMBED_ROWS = 64 };

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes) {
    return XXH3_64bits_withSeed(data, bytes, hash);
}

static uint64_t hash_data(uint64_t hash, const unsigned char *data, size_t bytes) {
    if (bytes <= (size_t)SAMPLES * SAMPLE_BYTES) return hash_bytes(hash, data, bytes);
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t at = (bytes - SAMPLE_BYTES) / (SAMPLES - 1) * i;
        hash = hash_bytes(hash, data + at, SAMPLE_BYTES);
    }
    return hash;
}

static uint64_t hash_tensor(uint64_t hash, const struct st_tensor *tensor) {
    const uint64_t shape[] = {tensor->dtype,   tensor->bytes,   tensor->dims[0],
                              tensor->dims[1], tensor->dims[2], tensor->dims[3]};
    hash = hash_bytes(hash, tensor->name, strlen(tensor->name));
    hash = hash_bytes(hash, shape, sizeof shape);
    return hash_data(hash, tensor->data, tensor->bytes);
}

// A GGUF file's configuration is what stands before its tensors.
static uint64_t hash_head(uint64_t hash, const struct st_checkpoint *checkpoint) {
    const struct st_map *map = &checkpoint->maps[0];
    size_t end = map->bytes;
    for (size_t i = 0; i < st_tensors_count(checkpoint->tensors); i++) {
        const unsigned char *data = st_tensors_at(checkpoint->tensors, i)->data;
        if (data >= map->data && data < map->data + map->bytes)
            end = st_min(end, (size_t)(data - map->data));
    }
    return hash_bytes(hash, map->data, end);
}

static uint64_t hash_config(uint64_t hash, const json_t *config) {
    char *text = config ? json_dumps(config, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (text) hash = hash_bytes(hash, text, strlen(text));
    free(text);
    return hash;
}

uint64_t st_model_hash(const struct stint_model *m) {
    const struct st_checkpoint *c = &m->checkpoint;
    if (c->package) return st_package_hash(c->package);
    if (!c->tensors) { // random weights
        const struct st_linear_weight *embed = &m->weights.embed;
        return hash_bytes(0, embed->data, st_min(embed->n_out, EMBED_ROWS) * embed->row_bytes);
    }
    uint64_t hash = hash_config(0, c->config);
    if (c->gguf && c->n_maps) hash = hash_head(hash, c);
    for (size_t i = 0; i < st_tensors_count(c->tensors); i++)
        hash = hash_tensor(hash, st_tensors_at(c->tensors, i));
    return hash;
}
