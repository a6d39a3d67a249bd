// SPDX-License-Identifier: Apache-2.0
// A float model whose linears simulate the INT8 of another quantization method: weights and inputs
// are quantized and dequantized (eval/fake_quantize.h), and all sums are float. Methods follow
// their papers. As in a package, norms, attention and embeddings stay in float and the head does
// not.
#ifndef ST_EVAL_BASELINE_H
#define ST_EVAL_BASELINE_H

#include "base/buffer.h"
#include "session/session.h"

struct st_baseline_method {
    // Inputs that come from a norm are divided by sqrt(max input / max weight) of each channel, and
    // the weights are multiplied by it (SmoothQuant, Xiao et al. 2023, section 4, alpha 0.5).
    bool smooth;
    bool rotate; // input and weights are rotated (QuaRot, Ashkboos et al. 2024)
    // Columns of a batch's input that hold a value of 6 or more are multiplied in float
    // (LLM.int8(), Dettmers et al. 2022, section 3.2).
    bool outliers;
    // Tokens with far larger inputs than all others are placed at the start of the KV cache, in
    // float (PrefixQuant, Chen et al. 2024, section 4).
    bool prefix;
    bool awq;          // weights alone, in 4 bits (eval/awq.h); the head stays in float
    bool static_scale; // one scale per linear, from calibration; else one per token
    size_t group;      // elements that share a scale, of weights and inputs; 0: a row
};

struct st_baseline;

struct st_baseline_options {
    const struct st_ids *ids; // calibration text
    uint32_t n_threads;
    stint_progress_fn *progress; // or NULL
    bool (*canceled)(void *context);
    void *context;
};

// Borrows the float model until close. STINT_E_NOMEM, E_CANCELED.
stint_status st_baseline_open(const struct st_baseline_method *method,
                              const struct stint_model *model,
                              const struct st_baseline_options *options,
                              struct st_baseline **baseline);
void st_baseline_close(struct st_baseline *baseline); // accepts NULL

// The model with quantized weights, for one attached session at a time.
const struct stint_model *st_baseline_model(const struct st_baseline *baseline);
// Makes the empty session quantize its inputs, and evaluates the prefix.
stint_status st_baseline_attach(struct st_baseline *baseline, struct stint_session *session);
size_t st_baseline_prefix(const struct st_baseline *baseline); // tokens

#endif
