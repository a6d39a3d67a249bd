// SPDX-License-Identifier: Apache-2.0
// The W8A8 linears of a packaged model, bound to the linear ops of a device, every shape checked
// against the config. Per layer: qkv, o, and for each feed-forward block up (with gate) and down.
#ifndef ST_MODEL_WEIGHTS_INT8_H
#define ST_MODEL_WEIGHTS_INT8_H

#include "base/arena.h"
#include "device/subgraph.h"
#include "format/package.h"
#include "model/config.h"

struct st_ffn_int8 {
    struct st_linear_op up, down;
};

struct st_layer_int8 {
    struct st_linear_op qkv, o;
    struct st_ffn_int8 *ffn; // [st_config_blocks()]
};

struct st_weights_int8 {
    struct st_layer_int8 *layers; // [n_layers]; NULL: a float model
    struct st_linear_op head;
    // Of any linear: inputs with a scale for each row; a middle of a feed-forward block with them;
    // inputs with them in two terms.
    bool row_scales, row_scaled_middle, two_term;
};

// The linears of a layer, in the order of a forward pass; %u: layer, then expert.
enum st_int8_role { ST_INT8_QKV, ST_INT8_O, ST_INT8_UP, ST_INT8_DOWN, ST_INT8_HEAD, ST_INT8_ROLES };

// The expert is of no meaning but in feed-forward blocks, nor the layer to the head.
static inline const struct st_linear_op *st_int8_linear_op(const struct st_weights_int8 *w,
                                                           enum st_int8_role role, uint32_t layer,
                                                           uint32_t expert) {
    if (role == ST_INT8_HEAD) return &w->head;
    const struct st_layer_int8 *l = &w->layers[layer];
    if (role == ST_INT8_QKV) return &l->qkv;
    if (role == ST_INT8_O) return &l->o;
    return role == ST_INT8_UP ? &l->ffn[expert].up : &l->ffn[expert].down;
}

// Bytes of its packed rows.
static inline uint64_t st_int8_packed_bytes(const struct st_int8_weight *w) {
    return (uint64_t)w->n_panels * st_int8_panel_bytes(w->n_in);
}

// One packed linear: q, k and v are one, gate and up are one.
struct st_linear_id {
    enum st_int8_role role;
    uint32_t layer, expert;
};
typedef stint_status st_linear_fn(void *context, struct st_linear_id id);

// Calls `fn` for each in the order of a pass, with the first n_experts experts of every router,
// until it fails.
stint_status st_linears_each(const struct st_config *config, uint32_t n_experts, st_linear_fn *fn,
                             void *context);

// What a linear consists of in a package: sections NAME plus these endings.
// ST_SECTION_INT8_N16K4 [packed rows, n_in]; absent where ST_NESTED_STORED_BITS is there
#define ST_INT8_WEIGHT ".weight"
#define ST_INT8_SCALE  ".scale"  // F32 [packed rows], of the weights
#define ST_INT8_SUMS   ".sums"   // I32 [packed rows], of each row's weights
// F32 [2], static scales of the activations: shadowed, pruned. Row scales: terms (1 or 2), 0.
#define ST_INT8_INPUT ".input"
#define ST_INT8_BIAS  ".bias" // F32 [packed rows], where there is one
// Of a linear with shadow execution alone:
// COLUMNS [n_in, packed rows], the weights by channel; I8 in packages that have no checks
#define ST_INT8_COLUMNS       ".columns"
#define ST_INT8_COLUMN_CHECKS ".column_checks" // I32 [n_in, 2], XXH3 of each, low half first
#define ST_INT8_COLUMN_SCALES ".column_scales" // F32 [n_in]
#define ST_INT8_HOT           ".hot" // I32 [n_in], a number 0, 1, ... per hot channel, else -1

// I32 [1], 7 or 8: the nested codes have so many bits, and INT8 weights are made of them
// (device/weight_set.h). Absent: INT8 weights are sections of their own.
#define ST_NESTED_STORED_BITS "nested.stored"
// A package with this section, I32 [2]: vocabulary and width, has no tensor of the embedding: its
// rows are those of the head (model/embedding.h).
#define ST_EMBEDDING_IN_HEAD "embedding.in_head"

// One of the feed-forward block's.
static inline bool st_int8_is_ffn(enum st_int8_role role) {
    return role == ST_INT8_UP || role == ST_INT8_DOWN;
}

enum { ST_INT8_NAME_BYTES = 64 };

// Writes the name of a linear, e.g. "layers.3.experts.1.up".
void st_int8_name(enum st_int8_role role, const struct st_config *config, uint32_t layer,
                  uint32_t expert, char name[ST_INT8_NAME_BYTES]);
// Its linear op without weights: outputs, epilogue, width of its input. True if it must have a
// bias; others may.
bool st_int8_shape(enum st_int8_role role, const struct st_config *config, uint32_t layer,
                   uint32_t expert, struct st_linear_op *linear_op);

// Where the sections come from: a package, or a generator of random ones.
struct st_int8_source {
    // Finds a section of this type and shape; `required` false: data stays NULL where it is absent.
    stint_status (*find)(void *context, const char *name, bool required,
                         struct st_section *section);
    void *context;
    // Whether a linear that has columns runs with shadow execution; NULL: all of them do.
    bool (*shadowed)(void *context, const char *linear);
};

// Runs twice on `arena` (base/arena.h). Scales must be finite and positive.
stint_status st_weights_int8_bind(const struct st_int8_source *source,
                                  const struct st_config *config, struct st_arena *arena,
                                  struct st_weights_int8 *weights);

// The bits of ST_NESTED_STORED_BITS; 0 where the section is absent.
stint_status st_int8_stored_bits(const struct st_int8_source *source, unsigned *bits);
// Binds the sections of a linear whose shape (outputs, epilogue, n_in, n_panels) is set.
stint_status st_int8_bind_linear_op(const struct st_int8_source *source, struct st_arena *arena,
                                    const char *name, bool must_bias,
                                    struct st_linear_op *linear_op);

// True if a column, `rows` bytes of channel c, is what `prepare` wrote, or nothing says what it
// was.
bool st_int8_column_is_whole(const struct st_int8_weight *weight, uint32_t c, const void *column,
                             size_t rows);

// For st_int8_source.find; context is a struct st_package.
stint_status st_int8_find_in_package(void *context, const char *name, bool required,
                                     struct st_section *section);

#endif
