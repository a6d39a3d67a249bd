// SPDX-License-Identifier: Apache-2.0
// Runs a text through a model layer by layer, so that the weights and the KV cache of only one
// layer are in memory: in float to observe the inputs of the linears, in float or INT8 to get the
// model's predictions.
#ifndef ST_PREPARE_CALIBRATE_H
#define ST_PREPARE_CALIBRATE_H

#include "prepare/outliers.h"
#include "prepare/predictions.h"
#include "session/pass.h"

// The statistics of the current layer, by role and expert, and of the head.
struct st_layer_stats {
    struct st_input_stats qkv, o, head;
    struct st_input_stats *up, *down; // [st_config_max_blocks()]
};

struct st_calibration {
    const struct stint_model *model;
    struct stint_session *session;
    struct st_arena arena;
    const int32_t *ids; // [n_ids], sequences of n_sequence
    size_t n_ids, n_sequence;
    size_t n_ids_all;           // n_ids, but where fewer are counted
    size_t n_observed;          // the first ones; the others are not observed
    float *hidden;              // [states, n_ids, hidden] between layers: several where a token
                                // has as many (session/streams.c); behind them what follows
    float *before;              // the same before the current layer
    float *keys[2], *values[2]; // rows that later layers use of caches, [n_ids, ...]; 1: of layers
                                // with a sliding window; or NULL
    float *normed; // what a layer's second mixer finds, where layers are joined; or NULL
    struct st_layer_stats stats;
    bool products;    // sums of x x^T are wanted; set before opening
    size_t n_counted; // ids that the second run of a layer takes, 0: all; set before opening
    unsigned bits;    // nested precision to run at; 0: INT8, or float; set before opening
    // Products may be those of integers of 16 bits (kernels/int16.h), which are off by some
    // ten-thousandths: always where inputs are observed, with this everywhere.
    bool roughly;
    // Called with every observed input of a layer's first run; or NULL.
    void (*watch)(void *context, const struct st_linear_input *input);
    void *watch_context;
    enum { ST_CALIBRATE_MAXIMA, ST_CALIBRATE_OUTLIERS } phase;
    bool (*stop)(void *context); // called between batches; or NULL
    void *stop_context;
};

// Computes the embedding of the ids, which are borrowed until close. If n_observed is 0, no
// statistics are kept.
stint_status st_calibration_open(const struct stint_model *model, const int32_t *ids, size_t n_ids,
                                 size_t n_observed, uint32_t n_threads,
                                 struct st_calibration *calibration);
void st_calibration_close(struct st_calibration *calibration); // accepts a zeroed one

// Of c->hidden for n_ids tokens: all that the next layers need.
size_t st_calibration_floats(const struct stint_model *model, size_t n_ids);

struct st_input_stats *st_calibration_stats(struct st_calibration *calibration,
                                            enum st_int8_role role, uint32_t expert);

// Runs layer `layer` over all sequences and sets `max` of its linears. An expert that received no
// token gets the largest values of the others.
stint_status st_calibration_layer(struct st_calibration *calibration, uint32_t layer);
// Runs the layer again over the same input, with scales and norms set: counts elements beyond the
// thresholds, and errors, on a sample of the tokens.
stint_status st_calibration_layer_again(struct st_calibration *calibration, uint32_t layer);
// The same two passes for the final norm, whose output the head reads.
stint_status st_calibration_head(struct st_calibration *calibration);
stint_status st_calibration_head_again(struct st_calibration *calibration);

// Call after the last layer. Predicts from id number `first` on and sets all but `at` and `exact`.
stint_status st_calibration_predict(struct st_calibration *calibration, size_t first,
                                    struct st_predictions *predictions);

#endif
