// SPDX-License-Identifier: Apache-2.0
// A checkpoint on disk as the rest of stint sees it: tensors by name, and the file that describes
// them. Owns the mapped files.
#ifndef ST_FORMAT_CHECKPOINT_H
#define ST_FORMAT_CHECKPOINT_H

#include "base/json.h"
#include "base/loader.h"
#include "format/gguf.h"
#include "format/package.h"
#include "format/tensors.h"

#include <time.h>

enum st_source { ST_SOURCE_HF, ST_SOURCE_GGUF, ST_SOURCE_PRESET };

struct st_checkpoint {
    enum st_source source;
    struct st_tensors *tensors;
    struct st_gguf *gguf;      // GGUF only
    json_t *config;            // HF only: config.json, an object
    uint64_t config_hash;      // the same: of the file's bytes
    json_t *generation_config; // HF only; NULL if absent
    json_t *meta;              // package only: how it was made
    char *path;
    bool lazy;                    // weights are read on demand
    struct st_package *package;   // NULL: not a package; `source` says what it was made from
    struct st_map *maps;          // [n_maps]
    struct st_loader_file *files; // [n_maps] of the maps
    struct timespec *written;     // [n_maps] when each was last written before it was opened
    size_t n_maps;
};

// `path`: an HF folder (model.safetensors, or model.safetensors.index.json with its shards, which
// must all be there and hold what the index says), a .gguf file, or a package, whose float tensors
// are those that no INT8 linear stands for. Another file: STINT_E_FORMAT that says what was
// expected. Shard names in an index may not leave the folder.
// *checkpoint is untouched on failure.
stint_status st_checkpoint_open(const char *path, struct st_checkpoint *checkpoint);
// The same, for weights that are read on demand; of a package, packed ones are left unchecked
// (st_package_open_lazy()).
stint_status st_checkpoint_open_lazy(const char *path, struct st_checkpoint *checkpoint);
void st_checkpoint_close(struct st_checkpoint *checkpoint); // accepts a zeroed one

// Gives the memory of data back to the system if they are in a map; they are read again when they
// are next used. Weights that were rewritten when the model was opened stay.
void st_checkpoint_forget(const struct st_checkpoint *checkpoint, const void *data, size_t bytes);
// Where data of the checkpoint, `bytes` of it, lie in its files. False: they are not in a map.
bool st_checkpoint_find(const struct st_checkpoint *checkpoint, const void *data, size_t bytes,
                        uint32_t *file, uint64_t *offset);

// The first file that has been written or cut since it was opened; NULL: none. One that was
// replaced by another of its name stays what it was.
const char *st_checkpoint_changed(const struct st_checkpoint *checkpoint);
// STINT_E_IO where there is one.
stint_status st_checkpoint_check(const struct st_checkpoint *checkpoint);

#endif
