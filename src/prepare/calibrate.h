// SPDX-License-Identifier: Apache-2.0
// The calibration text on its way through the float model, layer by layer: what each linear's input
// reached, channel by channel.
#ifndef ST_PREPARE_CALIBRATE_H
#define ST_PREPARE_CALIBRATE_H

#include "session/session.h"

// Largest magnitudes of one linear's input over the calibration text.
struct st_maxima {
    float *channel; // [n]
    size_t n;
};

// Maxima of the layer at hand, by role and expert; and of the head.
struct st_layer_maxima {
    struct st_maxima qkv, o, head;
    struct st_maxima *up, *down; // [max(1, n_experts)]
};

struct st_calibration {
    const struct stint_model *model;
    struct stint_session *session;
    struct st_arena arena;
    const int32_t *ids; // [n_ids], sequences of n_sequence
    size_t n_ids, n_sequence;
    float *hidden; // [n_ids, hidden] between layers
    struct st_layer_maxima maxima;
    bool (*stop)(void *context); // asked between batches; or NULL
    void *stop_context;
};

// Takes the first n_ids ids through the embedding. The ids are borrowed until close.
stint_status st_calibration_open(const struct stint_model *model, const int32_t *ids, size_t n_ids,
                                 uint32_t n_threads, struct st_calibration *calibration);
void st_calibration_close(struct st_calibration *calibration); // accepts a zeroed one

// Runs layer `layer` over all sequences; then maxima hold what its linears met. An expert that met
// no token has the largest of the others.
stint_status st_calibration_layer(struct st_calibration *calibration, uint32_t layer);
// Runs the final norm; then maxima.head holds what the head meets.
stint_status st_calibration_head(struct st_calibration *calibration);

// The static scale that max-min gives: largest magnitude over 127; 1 where all were zero.
// STINT_E_FORMAT where one is not finite; `name` stands in the text.
stint_status st_maxima_scale(const struct st_maxima *maxima, const char *name, float *scale);

#endif
