// SPDX-License-Identifier: Apache-2.0
// Writes a sparse model's neurons (model/weights_neurons.h): the INT8 weights of the dense linears
// once more, neuron by neuron, the most active ones first, and a predictor where one pays.
#ifndef ST_PREPARE_NEURONS_H
#define ST_PREPARE_NEURONS_H

#include "base/json.h"
#include "prepare/pack.h"
#include "prepare/predictor.h"

struct st_neuron_packer;

// Sees at most n_tokens of each layer. options->rank 0: by the model's width. STINT_E_NOMEM.
stint_status st_neuron_packer_open(const struct st_config *config,
                                   const struct st_predictor_options *options,
                                   enum st_neuron_code code, size_t n_tokens, uint32_t n_threads,
                                   struct st_neuron_packer **packer);
void st_neuron_packer_close(struct st_neuron_packer *packer); // accepts NULL

// What the linears' weights must be rounded to before they are packed; NULL: they stay INT8.
const struct st_levels *st_neurons_levels(const struct st_neuron_packer *packer);

struct st_linear_input;
// What goes into a layer's feed-forward linears (struct st_calibration, watch).
void st_neurons_see(struct st_neuron_packer *packer, const struct st_linear_input *input);

// What is known of the packed layers, as a JSON array: how many neurons are active for a token,
// what share of all activity the first tenth, second tenth, ... of the neurons has, and what the
// predictor does. *Returned*.
json_t *st_neurons_describe(const struct st_neuron_packer *packer);

// After the layer's linears are written.
stint_status st_neurons_pack(struct st_neuron_packer *packer, uint32_t layer,
                             struct st_packer *linears, struct st_package_writer *writer);

#endif
