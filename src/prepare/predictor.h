// SPDX-License-Identifier: Apache-2.0
// Predicts the active neurons of a block from its input by two small linears of low rank
// (PowerInfer, section 5.1; PowerInfer-2, section 4.1). They are trained on the calibration text
// with Adam (Kingma and Ba 2014) and the cross-entropy of each neuron. The threshold is then set so
// that the wanted share of the active neurons of held-out text is found. There is no activation
// between the linears: one was no better (docs/MEMORY.md).
#ifndef ST_PREPARE_PREDICTOR_H
#define ST_PREPARE_PREDICTOR_H

#include "base/thread.h"
#include "kernels/kernels.h"
#include "prepare/activity.h"

struct st_predictor {
    size_t hidden, ffn, rank;
    float *in;   // [rank, hidden]
    float *out;  // [ffn, rank]
    float *bias; // [ffn] minus the threshold: a neuron is predicted if its score exceeds 0
    float input_scale,
        rank_scale;      // of INT8 activations: of the inputs and of the first linear's outputs
    double found, share; // of held-out text: recall, and share of all neurons that it predicts
    struct st_trainer *trainer;
};

struct st_predictor_options {
    size_t rank;
    double recall;   // 0 to 1
    uint32_t epochs; // 0: a default that depends on the text
    uint64_t seed;
    bool (*stop)(void *context); // called between batches; or NULL
    void *stop_context;
};

// Borrows the pool until close. STINT_E_NOMEM.
stint_status st_predictor_open(size_t hidden, size_t ffn,
                               const struct st_predictor_options *options, struct st_pool *pool,
                               struct st_predictor *predictor);
void st_predictor_close(struct st_predictor *predictor); // accepts a zeroed one

// Trains on the first three quarters of the tokens, from the start at each call. The result does
// not depend on the number of threads. STINT_E_CANCELED.
stint_status st_predictor_train(struct st_predictor *predictor, const struct st_activity *activity);
// Rounds the weights to INT8 and sets the threshold on the last quarter. STINT_E_NOMEM.
stint_status st_predictor_calibrate(struct st_predictor *predictor,
                                    const struct st_activity *activity);

// For tests: the loss of a batch of tokens and its gradients with respect to in, out and bias.
double st_predictor_gradients(struct st_predictor *predictor, const struct st_activity *activity,
                              const uint32_t *tokens, size_t n, const float **in, const float **out,
                              const float **bias);

#endif
