// SPDX-License-Identifier: Apache-2.0
// The neurons of a packaged model whose feed-forward blocks are sparse (ReLU and its kin): the same
// INT8 weights as its dense linears, neuron by neuron, what is known of how often each is active,
// and per layer a predictor of which ones are (PowerInfer-2, sections 3 and 4).
#ifndef ST_MODEL_WEIGHTS_NEURONS_H
#define ST_MODEL_WEIGHTS_NEURONS_H

#include "format/neuron_layout.h"
#include "model/weights_int8.h"

enum {
    ST_NEURON_RATES = 4, // batch sizes 1, 2, 4, 8
    ST_NEURON_MAX_RANK = 4096,
};

// Sections "layers.N" plus these endings.
#define ST_NEURONS_BUNDLES ".neurons"        // ST_SECTION_NEURONS [ffn, parts, hidden] or [.., 4]
#define ST_NEURONS_BITS    ".neurons.bits"   // I32 [1] 4; not there: 8
#define ST_NEURONS_ORDER   ".neurons.order"  // I32 [ffn] the neuron of each place
#define ST_NEURONS_CHECKS  ".neurons.checks" // I32 [entries, 2] XXH3 of each entry, low half first
#define ST_NEURONS_RATES   ".neurons.rates"  // F32 [4, ffn] by place: how often it is active
// Optional: scores = out(in(x)), a neuron is active where its score, by place, is above 0.
#define ST_NEURONS_PREDICT_IN  ".predict_in"      // an INT8 linear [rank, hidden]
#define ST_NEURONS_PREDICT_OUT ".predict_out"     // the same [ffn, rank], with a bias
#define ST_NEURONS_RANK        ".predict_in.rank" // I32 [1]

struct st_layer_neurons {
    const unsigned char *bundles; // in the map
    const int32_t *order;         // [n]
    const int32_t *checks;        // [n_entries, 2]
    const float *rates;           // [ST_NEURON_RATES, n]
    bool predicted;
    struct st_linear_op predict_in, predict_out;
};

struct st_weights_neurons {
    struct st_neuron_layout layout;
    struct st_layer_neurons *layers; // [n_layers]; NULL: none are there
};

// True if an activation is exactly 0 for many inputs.
bool st_act_is_sparse(enum st_act act);

void st_neurons_name(uint32_t layer, const char *ending, char name[ST_INT8_NAME_BYTES]);
// The shapes of a predictor.
void st_predictor_shape(const struct st_config *config, uint32_t rank, struct st_linear_op *in,
                        struct st_linear_op *out);

// Binds what is there. Runs twice on `arena` (base/arena.h). STINT_E_FORMAT.
stint_status st_weights_neurons_bind(const struct st_int8_source *source,
                                     const struct st_config *config, struct st_arena *arena,
                                     struct st_weights_neurons *neurons);

#endif
