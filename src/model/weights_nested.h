// SPDX-License-Identifier: Apache-2.0
// The nested linears of a packaged model (kernels/nested.h), beside its INT8 ones: the same float
// linears a second time, each part by itself, bound to their places in the layers.
#ifndef ST_MODEL_WEIGHTS_NESTED_H
#define ST_MODEL_WEIGHTS_NESTED_H

#include "model/weights.h"
#include "model/weights_int8.h"

// What a linear consists of in a package: sections NAME plus these endings.
#define ST_NESTED_CODES ".nested" // ST_SECTION_NESTED [n_out, n_in, highest precision]
// I32 [regions of the codes, 2], XXH3 of each, low half first. Absent: they are not read on demand.
#define ST_NESTED_CHECKS    ".nested_checks"
#define ST_NESTED_GROUPS_OF ".nested_groups" // and bits: I8 [bytes] as struct st_nested_weight has
#define ST_NESTED_ROWS      ".nested_rows"   // F32 [precisions, padded rows, 2]
#define ST_NESTED_BIAS      ".nested_bias"   // F32 [n_out], where there is one
// With outliers kept in float:
#define ST_NESTED_OUTLIER_ROWS    ".nested_outlier_rows"    // I32 [n_out + 1]
#define ST_NESTED_OUTLIER_COLUMNS ".nested_outlier_columns" // I32 [n]
#define ST_NESTED_OUTLIERS        ".nested_outliers"        // F32 [precisions, n]
// I32 [2]: the lowest and the highest precision of a run. Absent: there are none.
#define ST_NESTED_PRECISIONS "nested.precisions"
// I32 [precisions, nested linears]: the bits that each linear is read with in a run of that
// precision, lowest first, never falling. Absent: as many as the run's.
#define ST_NESTED_BITS "nested.bits"

// The float or nested linears that one packed linear stands for, in the order of its outputs: q, k
// and v; up, and gate where there is one. Returns how many.
size_t st_linear_parts(const struct st_weights *weights, struct st_linear_id id,
                       const struct st_linear_weight *parts[ST_LINEAR_OP_PARTS]);

struct st_nested_range {
    uint8_t low, high; // 0: none
};

// `otherwise`, with the limits, unless the precisions are ascending and within them.
stint_status st_nested_check_range(int64_t low, int64_t high, stint_status otherwise);

// The longest input of a nested linear.
size_t st_nested_widest(const struct st_config *config);

static inline bool st_nested_has(const struct st_nested_range *range, unsigned bits) {
    return range->high && bits >= range->low && bits <= range->high;
}

// The name of the section with the groups of a linear's codes of `bits` bits.
void st_nested_groups_name(const char *linear, unsigned bits, char name[ST_INT8_NAME_BYTES + 32]);
// The name of a part of a linear, e.g. part 1 of ST_INT8_QKV: "layers.3.k". Gated feed-forward
// blocks have gate and up as parts of ST_INT8_UP, others up alone.
void st_nested_name(enum st_int8_role role, uint32_t part, const struct st_config *config,
                    uint32_t layer, uint32_t expert, char name[ST_INT8_NAME_BYTES]);

// One of a model's nested linears.
struct st_nested_place {
    char name[ST_INT8_NAME_BYTES];
    uint32_t part;                         // of id's linear, as st_nested_name() counts them
    uint32_t index;                        // counts them
    struct st_linear_id id;                // of the packed linear that it is a part of
    const struct st_linear_weight *linear; // NULL while those are only counted
    uint32_t n_out, n_in;
};
typedef stint_status st_nested_place_fn(void *context, const struct st_nested_place *place);

// Calls `fn` for each, until it fails. `ffn`: the feed-forward blocks have them too, which those of
// a model with neurons have not.
stint_status st_weights_nested_each(const struct st_config *config,
                                    const struct st_weights *weights, bool ffn,
                                    st_nested_place_fn *fn, void *context);

// After st_weights_int8_bind() on the same arena: gives each packed linear the nested codes that
// its panels are made of, if they are stored so. Runs twice. STINT_E_FORMAT.
stint_status st_weight_sets_bind(const struct st_int8_source *source,
                                 const struct st_config *config, bool ffn, struct st_arena *arena,
                                 struct st_weights_int8 *weights);

// After st_weights_bind() on the same arena: sets `nested` (and the bias) of every linear that has
// codes. Runs twice. STINT_E_FORMAT.
stint_status st_weights_nested_bind(const struct st_int8_source *source,
                                    const struct st_config *config, bool ffn,
                                    struct st_arena *arena, struct st_weights *weights,
                                    struct st_nested_range *range);

#endif
