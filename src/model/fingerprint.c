// SPDX-License-Identifier: Apache-2.0
#include "model/fingerprint.h"

#include "base/direct.h"
#include "base/size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { READ_BYTES = 1 << 20 }; // at once: stays in the processor's cache

struct reading {
    XXH3_state_t *state;
    unsigned char *buffer; // [READ_BYTES]
};

// Through a buffer, so that a model under a memory bound stays within it.
static stint_status add_bytes(const struct reading *r, const char *name, int file, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        size_t most = st_min(bytes - done, READ_BYTES);
        // The last piece has any length; direct reads are of whole blocks.
        ssize_t n = pread(file, r->buffer, st_round_up(most, ST_DIRECT_BLOCK), (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return st_fail(STINT_E_IO, "%s: %s", name, strerror(errno));
        size_t used = st_min((size_t)n, most);
        if (used == 0 || (used < most && used % ST_DIRECT_BLOCK != 0))
            return st_fail(STINT_E_IO, "%s: was cut while it was read", name);
        XXH3_64bits_update(r->state, r->buffer, used);
        done += used;
    }
    return STINT_OK;
}

// Where weights are read on demand the page cache is left alone, too.
static stint_status add_file(const struct reading *r, const struct st_checkpoint *c, size_t i) {
    bool direct;
    const char *name = c->files[i].name;
    int file = c->lazy ? st_direct_open(c->files[i].file, &direct) : c->files[i].file;
    if (file < 0) return st_fail(STINT_E_IO, "%s: %s", name, strerror(errno));
    stint_status status = add_bytes(r, name, file, c->maps[i].bytes);
    if (c->lazy) close(file);
    return status;
}

// Of random weights.
static void add_tensor(const struct reading *r, const struct st_tensor *tensor) {
    XXH3_64bits_update(r->state, tensor->name, strlen(tensor->name));
    XXH3_64bits_update(r->state, tensor->dims, sizeof tensor->dims);
    XXH3_64bits_update(r->state, tensor->data, tensor->bytes);
}

static stint_status add_all(const struct reading *r, const struct st_checkpoint *c) {
    XXH3_64bits_update(r->state, &c->config_hash, sizeof c->config_hash);
    for (size_t i = 0; i < c->n_maps; i++) ST_TRY(add_file(r, c, i));
    for (size_t i = 0; i < st_tensors_count(c->tensors) && c->n_maps == 0; i++)
        add_tensor(r, st_tensors_at(c->tensors, i));
    return st_checkpoint_check(c);
}

static stint_status hash_checkpoint(const struct st_checkpoint *c, uint64_t *hash) {
    struct reading r = {XXH3_createState(), aligned_alloc(ST_DIRECT_BLOCK, READ_BYTES)};
    stint_status status = r.state && r.buffer ? STINT_OK
                                              : st_fail(STINT_E_NOMEM, "no memory to hash a model");
    if (status == STINT_OK) {
        XXH3_64bits_reset(r.state);
        status = add_all(&r, c);
    }
    if (status == STINT_OK) *hash = XXH3_64bits_digest(r.state);
    free(r.buffer);
    XXH3_freeState(r.state);
    return status;
}

stint_status st_model_hash(const struct stint_model *model, uint64_t *hash) {
    // All that changes of an open model. Threads that read it at once get the same.
    atomic_ullong *known = &((struct stint_model *)(uintptr_t)model)->hash;
    uint64_t found = atomic_load(known);
    if (model->checkpoint.package) found = st_package_hash(model->checkpoint.package);
    if (found == 0) ST_TRY(hash_checkpoint(&model->checkpoint, &found));
    atomic_store(known, found);
    *hash = found;
    return STINT_OK;
}
