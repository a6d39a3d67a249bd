// SPDX-License-Identifier: Apache-2.0
// The state of one preparation, and its steps.
#ifndef ST_PREPARE_JOB_H
#define ST_PREPARE_JOB_H

#include "prepare/calibrate.h"
#include "prepare/nested.h"
#include "prepare/neurons.h"
#include "prepare/pack.h"
#include "prepare/plan.h"

// What a package loses at a precision, on held-out text.
struct st_loss {
    unsigned bits;
    double mean_bits; // of a weight
    double divergence, top1_agreement; // as in stint_prepare_summary
    double perplexity_ratio;           // to the source's
};

struct st_prepare_job {
    const char *source;
    const stint_prepare_options *options;
    stint_model *model;
    struct st_package_writer *writer;
    struct st_packer *packer;
    struct st_nested_packer *nested;  // NULL: not requested
    struct st_allocation *allocation; // [n_nested] bits of the nested linears; owned
    uint32_t n_nested;
    struct st_slopes slopes; // of the current input
    struct st_neuron_packer *neurons; // the same
    struct st_calibration calibration;
    struct st_ids ids;
    size_t n_observed; // number of ids; the rest is held out
    struct st_plan plan;
    struct st_predictions exact; // of the source on the held-out text, if it is long enough
    struct st_loss losses[ST_PANEL_PRECISIONS]; // at each nested precision
    size_t n_losses;
    stint_prepare_summary summary;
    uint64_t done; // steps
};

// Reports one more step. STINT_E_CANCELED if the caller asks to stop.
stint_status st_prepare_step(struct st_prepare_job *job, const char *what);
// Used as the `stop` of a calibration; `context` is the options.
bool st_prepare_is_canceled(void *options);

// convert.c: calibrates and writes all linears, but for what the plan decides.
stint_status st_prepare_convert(struct st_prepare_job *job);
// Writes the columns of the linears that the plan names, unless they are written already, and
// removes the columns of other linears after them.
stint_status st_prepare_write_columns(struct st_prepare_job *job);
stint_status st_prepare_drop_columns(struct st_prepare_job *job);
// Writes how the plan quantizes the inputs. Call after the columns.
stint_status st_prepare_write_inputs(struct st_prepare_job *job);

// select.c: decides in job->plan which linears are shadowed, and measures what the package loses on
// held-out text, in job->summary.
stint_status st_prepare_select(struct st_prepare_job *job);

// How many ids are held out.
static inline size_t st_prepare_held_out(const struct st_prepare_job *job) {
    return job->ids.count - job->n_observed;
}

// measure.c: sets job->losses from the package, which has been settled; warns where a precision
// destroys the model. Nothing is measured if no text is held out or there are no nested weights.
stint_status st_prepare_measure(struct st_prepare_job *job);
// Runs the first `n_ids` of the held-out text through a model, at `bits` (0: INT8), compares its
// predictions with the source's in p, and calls `done_with` after each layer.
typedef void (*st_prepare_forget)(const struct stint_model *model, uint32_t layer);
stint_status st_prepare_predict(const struct st_prepare_job *job, const struct stint_model *model,
                                size_t n_ids, unsigned bits, st_prepare_forget done_with,
                                struct st_predictions *p);

#endif
