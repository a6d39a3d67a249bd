// SPDX-License-Identifier: Apache-2.0
// Reads the package once it is whole, to measure what it loses at each nested precision on the
// held-out text.
#include "prepare/job.h"

#include "base/log.h"

#include <math.h>
#include <stdlib.h>

// The share of first choices below which a precision is of no use.
static const double least_agreement = 0.6;

// The pages of the file, which need not stay.
static void forget(const struct stint_model *m, uint32_t layer) {
    (void)layer;
    for (size_t i = 0; i < m->checkpoint.n_maps; i++)
        st_map_forget(m->checkpoint.maps[i].data, m->checkpoint.maps[i].bytes);
}

stint_status st_prepare_predict(const struct st_prepare_job *job, const struct stint_model *m,
                                size_t n_ids, unsigned bits, st_prepare_forget done_with,
                                struct st_predictions *p) {
    // What a nested precision loses is what its steps lose, but for a hundredth of it.
    struct st_calibration c = {.bits = bits,
                               .roughly = bits != 0,
                               .stop = st_prepare_is_canceled,
                               .stop_context = (void *)(uintptr_t)job->options};
    const int32_t *ids = job->ids.data + job->n_observed;
    stint_status status = st_calibration_open(m, ids, n_ids, 0, job->options->n_threads, &c);
    for (uint32_t i = 0; i < m->config.n_layers && status == STINT_OK; i++) {
        status = st_calibration_layer(&c, i);
        done_with(m, i);
    }
    if (status == STINT_OK) status = st_calibration_predict(&c, 0, p);
    st_calibration_close(&c);
    return status;
}

static void note(struct st_prepare_job *job, unsigned bits, const struct st_predictions *p) {
    struct st_loss *loss = &job->losses[job->n_losses++];
    double n = (double)p->n;
    double exact = st_predictions_perplexity(&job->exact);
    *loss = (struct st_loss){.bits = bits,
                             .mean_bits = st_allocation_mean(job->allocation, job->n_nested, bits),
                             .divergence = fmin(p->divergence / n, 1e300),
                             .perplexity_ratio = st_predictions_perplexity(p) / exact,
                             .top1_agreement = (double)p->n_same / n};
    if (loss->top1_agreement >= least_agreement) return;
    st_log(
        STINT_LOG_WARNING,
        "at %u bits the package keeps only %.0f %% of the source's first choices on held-out text "
        "(perplexity %.3g times): do without this precision (--bits)",
        bits, 100 * loss->top1_agreement, loss->perplexity_ratio);
}

static stint_status measure_all(struct st_prepare_job *job, const struct stint_model *m) {
    struct st_predictions p = {.exact = &job->exact};
    p.at = calloc(job->exact.n, sizeof *p.at);
    if (!p.at) return st_fail(STINT_E_NOMEM, "no memory for %zu predictions", job->exact.n);
    stint_status status = STINT_OK;
    for (unsigned bits = m->nested.low; bits <= m->nested.high && status == STINT_OK; bits++) {
        status = st_prepare_predict(job, m, st_prepare_held_out(job), bits, forget, &p);
        if (status == STINT_OK) note(job, bits, &p);
    }
    free(p.at);
    return status;
}

stint_status st_prepare_measure(struct st_prepare_job *job) {
    stint_model_options options = {.size = sizeof options, .no_tokenizer = true};
    stint_model *m = NULL;
    char *path = NULL;
    if (!job->nested || !job->exact.n) return STINT_OK;
    ST_TRY(st_package_settle(job->writer, &path));
    stint_status status = stint_model_open(path, &options, &m);
    if (status == STINT_OK) {
        forget(m, 0);
        status = measure_all(job, m);
    }
    stint_model_close(m);
    free(path);
    return status;
}
