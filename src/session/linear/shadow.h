// SPDX-License-Identifier: Apache-2.0
// Shadow outlier execution (llm.npu, section 3.3; docs/NUMERICS.md): elements that are too large
// for INT8 are multiplied in float and added to the device's product. The columns of hot channels
// are in memory. The others are read from the package while the device computes: by a thread of
// their own, or, under a memory bound, by the session's loader, which checks the hash of each; some
// of them stay (session/linear/columns.h).
#ifndef ST_SESSION_SHADOW_H
#define ST_SESSION_SHADOW_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/loader.h"
#include "base/reader.h"
#include "device/outliers.h"
#include "device/subgraph.h"
#include "model/model.h"
#include "session/linear/columns.h"

// Maximum of channels at a time. Twice this is at most ST_READER_DEPTH.
enum { ST_SHADOW_WAVE = 256 };

// Statistics of the session's shadowed linears since it was opened.
struct st_shadow_counts {
    uint64_t runs, channels; // linears times chunks; outlier channels of all of them
    uint64_t hot_hits, cold_reads, cold_bytes;
    uint64_t ns, device_ns; // in shadow execution; of the same linears' products
};

// Adds the time since *begun to *ns, and restarts the clock.
static inline void st_shadow_count(uint64_t *ns, uint64_t *begun) {
    uint64_t now = st_now_ns();
    *ns += now - *begun;
    *begun = now;
}

struct st_shadow {
    bool any; // the model has shadowed linears; if not, nothing else is set
    uint32_t n_linears;
    uint64_t hot_bytes, float_bytes; // bytes of hot columns; of the linears' weights in F32
    const struct st_elementwise *elementwise;
    struct st_reader *reader; // both NULL: all columns are in memory
    struct st_loader *loader;
    const struct st_columns *columns; // that stay, where there is a loader; or NULL
    const struct st_checkpoint *checkpoint;
    uint64_t file_base;              // address of the package's first byte
    size_t capacity;                 // of each list: every element of an input fits
    struct st_outliers *in, *middle; // of the input of a linear; of what lies between two
    struct st_outlier *sorted;       // [capacity]
    uint32_t *first;                 // [chunk_len + 1] each token's entries in `sorted`
    uint32_t *next;                  // [chunk_len] the first entry that is not added yet
    uint32_t *channels;              // [widest input] outlier channels of the run, ascending
    uint8_t *seen;                   // [widest input]
    const int8_t **column;           // [wave]
    int8_t *cold;                    // [2, wave, slot_bytes]
    size_t wave, slot_bytes; // channels at once; a column, or the blocks of the file it lies in
    struct st_load *loads;   // [2, wave] where there is a loader: each run of columns that lie
    uint32_t *load_of;       // [2, wave] side by side is one load
    float *add;              // [chunk_len, packed rows of up]
    int32_t *add_row;
    struct st_shadow_counts counts;
    // The current run.
    bool pending; // begun, not finished
    struct st_pool *pool;
    const struct st_linear_op *linear_op;
    struct st_kept *kept; // columns of this linear that stay; or NULL
    size_t n_tokens, n_channels;
    size_t asked, loaded; // channels whose columns were requested; that have arrived
};

// Runs twice on `arena` (base/arena.h); does nothing for a model without shadowed linears.
void st_shadow_lay_out(struct st_shadow *shadow, const struct stint_model *model, size_t chunk_len,
                       struct st_arena *arena);
// Borrows all until close. STINT_E_NOMEM.
// `loader` and `columns`: read the package under a memory bound, and what stays of it; NULL without
// one.
stint_status st_shadow_open(struct st_shadow *shadow, const struct stint_model *model,
                            const struct st_elementwise *elementwise, struct st_loader *loader,
                            const struct st_columns *columns);
void st_shadow_close(struct st_shadow *shadow); // accepts a zeroed one

// `list`, if quantizing the input of this linear must fill it; NULL where it is not shadowed.
struct st_outliers *st_shadow_list(const struct st_shadow *shadow,
                                   const struct st_linear_op *linear_op, struct st_outliers *list);

// Sorts the outliers of n_tokens tokens and requests the first cold columns. shadow->pending tells
// whether there are outliers.
void st_shadow_begin(struct st_shadow *shadow, const struct st_linear_op *linear_op,
                     const struct st_outliers *list, size_t n_tokens);
// Adds a pending shadow to the outputs of a FLOAT linear op. STINT_E_IO if a column cannot be read,
// E_FORMAT if it does not match its hash.
stint_status st_shadow_finish(struct st_shadow *shadow, struct st_pool *pool, float *const *out,
                              const size_t *out_row);
// Discards a pending shadow, and waits for the columns that it requested.
void st_shadow_abandon(struct st_shadow *shadow);
// The same before the product of a linear op with an activation: writes to shadow->add and add_row.
// The shadow stays pending.
stint_status st_shadow_finish_before(struct st_shadow *shadow, struct st_pool *pool);

#endif
