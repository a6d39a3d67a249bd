// SPDX-License-Identifier: Apache-2.0
// Writes the neurons of a sparse model (model/weights_neurons.h): a second copy of the INT8 weights
// of the dense linears, neuron by neuron in descending order of activity, and a predictor where one
// is worth it.
#ifndef ST_PREPARE_NEURONS_H
#define ST_PREPARE_NEURONS_H

#include "base/json.h"
#include "prepare/pack.h"
#include "prepare/predictor.h"

struct st_neuron_packer;

// Observes at most n_tokens in each layer. options->rank 0: derived from the model's width.
// STINT_E_NOMEM.
stint_status st_neuron_packer_open(const struct st_config *config,
                                   const struct st_predictor_options *options,
                                   enum st_neuron_code code, size_t n_tokens, uint32_t n_threads,
                                   struct st_neuron_packer **packer);
void st_neuron_packer_close(struct st_neuron_packer *packer); // accepts NULL

// The levels to which the linears' weights must be rounded before packing; NULL: any INT8 value.
const struct st_levels *st_neurons_levels(const struct st_neuron_packer *packer);

struct st_linear_input;
// Receives the inputs of a layer's feed-forward linears (struct st_calibration, watch).
void st_neurons_see(struct st_neuron_packer *packer, const struct st_linear_input *input);

// The report of the packed layers, a JSON array: how many neurons are active for a token, the share
// of all activity that each tenth of the neurons has, and how good the predictor is. *Returned*.
json_t *st_neurons_describe(const struct st_neuron_packer *packer);

// Call after the layer's linears are written.
stint_status st_neurons_pack(struct st_neuron_packer *packer, uint32_t layer,
                             struct st_packer *linears, struct st_package_writer *writer);

#endif
