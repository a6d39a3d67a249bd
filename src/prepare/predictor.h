// SPDX-License-Identifier: Apache-2.0
// Which neurons will be active, told from a block's input by two small linears, the first of low
// rank (PowerInfer, section 5.1; PowerInfer-2, section 4.1): trained on the calibration text with
// Adam (Kingma and Ba 2014) and the cross-entropy of each neuron, then given the threshold at which
// the wanted share of the active neurons of text it did not learn from is found. There is no
// activation between the linears: one was no better (docs/MEMORY.md).
#ifndef ST_PREPARE_PREDICTOR_H
#define ST_PREPARE_PREDICTOR_H

#include "base/thread.h"
#include "kernels/kernels.h"
#include "prepare/activity.h"

struct st_predictor {
    size_t hidden, ffn, rank;
    float *in;   // [rank, hidden]
    float *out;  // [ffn, rank]
    float *bias; // [ffn] with the threshold taken away: active is what scores above 0
    float input_scale, rank_scale; // of INT8 activations: inputs, and outputs of the first linear
    double found, share;           // of the held-out active neurons; of all that it names
    struct st_trainer *trainer;
};

struct st_predictor_options {
    size_t rank;
    double recall;   // 0 to 1
    uint32_t epochs; // 0: as many as it takes
    uint64_t seed;
    bool (*stop)(void *context); // asked between batches; or NULL
    void *stop_context;
};

// Borrows the pool until close. STINT_E_NOMEM.
stint_status st_predictor_open(size_t hidden, size_t ffn,
                               const struct st_predictor_options *options, struct st_pool *pool,
                               struct st_predictor *predictor);
void st_predictor_close(struct st_predictor *predictor); // accepts a zeroed one

// Learns from the first three quarters of the tokens, begins anew each time. The same for any
// number of threads. STINT_E_CANCELED.
stint_status st_predictor_train(struct st_predictor *predictor, const struct st_activity *activity);
// Rounds the weights to INT8 and sets the threshold by the last quarter. STINT_E_NOMEM.
stint_status st_predictor_calibrate(struct st_predictor *predictor,
                                    const struct st_activity *activity);

// For tests: the loss of a batch of tokens, and its gradients by in, out and bias.
double st_predictor_gradients(struct st_predictor *predictor, const struct st_activity *activity,
                              const uint32_t *tokens, size_t n, const float **in, const float **out,
                              const float **bias);

#endif
