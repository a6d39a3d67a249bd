// SPDX-License-Identifier: Apache-2.0
// A text on its way through a model, layer by layer, so that one layer's weights and one layer's KV
// cache are in memory at a time: in float to see what each linear's input is, in float or INT8 to
// see what the model makes of the text.
#ifndef ST_PREPARE_CALIBRATE_H
#define ST_PREPARE_CALIBRATE_H

#include "prepare/outliers.h"
#include "session/pass.h"

// Of the layer at hand, by role and expert; and of the head.
struct st_layer_stats {
    struct st_input_stats qkv, o, head;
    struct st_input_stats *up, *down; // [max(1, n_experts)]
};

struct st_calibration {
    const struct stint_model *model;
    struct stint_session *session;
    struct st_arena arena;
    const int32_t *ids; // [n_ids], sequences of n_sequence
    size_t n_ids, n_sequence;
    size_t n_observed; // the first ones; the others pass unseen
    float *hidden;     // [n_ids, hidden] between layers
    float *before;     // the same before the layer at hand
    struct st_layer_stats stats;
    bool products; // wanted; set before opening
    // Sees every observed input of a layer the first time it runs; or NULL.
    void (*watch)(void *context, const struct st_linear_input *input);
    void *watch_context;
    enum { ST_CALIBRATE_MAXIMA, ST_CALIBRATE_OUTLIERS } phase;
    bool (*stop)(void *context); // asked between batches; or NULL
    void *stop_context;
};

// Takes the ids through the embedding. They are borrowed until close. Without observation
// (n_observed is 0) no statistics are kept.
stint_status st_calibration_open(const struct stint_model *model, const int32_t *ids, size_t n_ids,
                                 size_t n_observed, uint32_t n_threads,
                                 struct st_calibration *calibration);
void st_calibration_close(struct st_calibration *calibration); // accepts a zeroed one

struct st_input_stats *st_calibration_stats(struct st_calibration *calibration,
                                            enum st_int8_role role, uint32_t expert);

// Runs layer `layer` over all sequences; then `max` of its linears is known. An expert that met no
// token has the largest of the others.
stint_status st_calibration_layer(struct st_calibration *calibration, uint32_t layer);
// Runs the layer once more over the same input, with scales and norms set: then elements beyond the
// thresholds and errors are counted, on a sample of the tokens.
stint_status st_calibration_layer_again(struct st_calibration *calibration, uint32_t layer);
// The final norm; and again.
stint_status st_calibration_head(struct st_calibration *calibration);
stint_status st_calibration_head_again(struct st_calibration *calibration);

enum { ST_PREDICTED = 32 };

// The likeliest tokens at one position, the likeliest first.
struct st_predicted {
    int32_t id[ST_PREDICTED];
    float log_p[ST_PREDICTED];
};

// What a model predicts of each sequence's next tokens.
struct st_predictions {
    struct st_predicted *at; // [n]; room for as many as there are ids
    size_t n;
    double loss;                        // sum of -ln p of the tokens that come
    const struct st_predictions *exact; // what to compare with; or NULL
    double divergence; // sum of Kullback-Leibler divergences from it, over its likeliest tokens and
                       // the rest as one
    size_t n_same;     // positions whose likeliest token is the same
};

// After the last layer, from the `first`-th id on. Sets all but `at` and `exact`.
stint_status st_calibration_predict(struct st_calibration *calibration, size_t first,
                                    struct st_predictions *predictions);

#endif
