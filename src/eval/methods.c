// SPDX-License-Identifier: Apache-2.0
#include "eval/methods.h"

#include "prepare/calibration_tokens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct method {
    const char *name, *about;
    enum { AS_IT_IS, PACKAGE, BASELINE } kind;
    stint_outliers outliers; // of a package
    const char *target;
    float outlier_prune;
    struct st_baseline_method baseline;
};

static const struct method methods[] = {
    {.name = "float", .about = "nothing is quantized", .kind = AS_IT_IS},
    {.name = "w8a8",
     .about = "INT8, scales reach the largest input",
     .kind = PACKAGE,
     .outliers = STINT_OUTLIERS_NONE},
    {.name = "clip",
     .about = "INT8, inputs clipped where that costs least",
     .kind = PACKAGE,
     .outliers = STINT_OUTLIERS_SHARE,
     .outlier_prune = 1.0f},
    {.name = "shadow",
     .about = "INT8 with static scales and shadow outliers, as for an NPU",
     .kind = PACKAGE,
     .outliers = STINT_OUTLIERS_AUTO,
     .target = "sim"},
    {.name = "rows",
     .about = "INT8 with a scale per token, in two terms where needed, as for a CPU",
     .kind = PACKAGE,
     .outliers = STINT_OUTLIERS_AUTO,
     .target = "cpu"},
    {.name = "smoothquant",
     .about = "inputs after norms smoothed into the weights, one scale per linear",
     .kind = BASELINE,
     .baseline = {.smooth = true, .static_scale = true}},
    {.name = "int8()",
     .about = "LLM.int8(): columns with values beyond 6 in float, a scale per token",
     .kind = BASELINE,
     .baseline = {.outliers = true}},
    {.name = "group",
     .about = "a scale for each 32 weights and inputs",
     .kind = BASELINE,
     .baseline = {.group = 32}},
    {.name = "awq",
     .about = "AWQ: weights alone, in 4 bits with a scale and a zero for each 128",
     .kind = BASELINE,
     .baseline = {.group = 128, .awq = true}},
    {.name = "rotation",
     .about = "QuaRot: inputs and weights rotated, a scale per token",
     .kind = BASELINE,
     .baseline = {.rotate = true}},
    {.name = "prefix",
     .about = "PrefixQuant: outlier tokens first, in float; one scale per linear",
     .kind = BASELINE,
     .baseline = {.prefix = true, .static_scale = true}},
};

enum { N_METHODS = sizeof methods / sizeof *methods };

const char *stint_eval_method(size_t i, const char **about) {
    if (i >= N_METHODS) return NULL;
    if (about) *about = methods[i].about;
    return methods[i].name;
}

static stint_status find(const char *name, const struct method **method) {
    char known[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < N_METHODS; i++) {
        if (strcmp(name, methods[i].name) == 0) {
            *method = &methods[i];
            return STINT_OK;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 methods[i].name);
    }
    return st_fail(STINT_E_ARG, "method '%.64s' is not known; known are: %s", name, known);
}

// Prepares the package under a unique name and opens it; the file is deleted when it is closed.
static stint_status open_package(const struct method *method, const stint_eval_options *o,
                                 struct st_subject *subject) {
    const char *folder = getenv("TMPDIR");
    char *path = NULL;
    if (asprintf(&path, "%s/stint-eval-XXXXXX", folder && *folder ? folder : "/tmp") < 0)
        return st_fail(STINT_E_NOMEM, "no memory for a name");
    int file = mkstemp(path);
    if (file < 0) {
        stint_status status =
            st_fail(STINT_E_IO, "%s: %s (TMPDIR says where)", path, strerror(errno));
        free(path);
        return status;
    }
    close(file);
    stint_prepare_options prepare = {.size = sizeof prepare,
                                     .text = o->text,
                                     .text_bytes = o->text_bytes,
                                     .outliers = method->outliers,
                                     .outlier_prune = method->outlier_prune,
                                     .n_threads = o->session ? o->session->n_threads : 0,
                                     .progress = o->progress,
                                     .progress_context = o->context,
                                     .canceled = o->canceled,
                                     .canceled_context = o->context,
                                     .target = method->target};
    stint_status status = stint_prepare(subject->model->checkpoint.path, path, &prepare, NULL);
    if (status == STINT_OK) status = stint_model_open(path, NULL, &subject->package);
    unlink(path);
    free(path);
    if (status == STINT_OK) subject->model = subject->package;
    return status;
}

static stint_status open_baseline(const struct method *method, const stint_eval_options *o,
                                  struct st_subject *subject) {
    struct st_ids ids = {0};
    struct st_calibration_input text = {.text = o->text, .text_bytes = o->text_bytes};
    struct st_baseline_options options = {.ids = &ids,
                                          .n_threads = o->session ? o->session->n_threads : 0,
                                          .progress = o->progress,
                                          .canceled = o->canceled,
                                          .context = o->context};
    stint_status status = st_calibration_tokens(subject->model, &text, &ids);
    if (status == STINT_OK)
        status = st_baseline_open(&method->baseline, subject->model, &options, &subject->baseline);
    st_ids_free(&ids);
    if (status == STINT_OK) subject->model = st_baseline_model(subject->baseline);
    return status;
}

stint_status st_subject_open(const struct stint_model *model, const stint_eval_options *options,
                             struct st_subject *subject) {
    const struct method *method = &methods[0];
    struct st_subject s = {.model = model};
    stint_status status = STINT_OK;
    if (options->method) ST_TRY(find(options->method, &method));
    if (options->method && (model->checkpoint.package || !model->checkpoint.path))
        return st_fail(STINT_E_UNSUPPORTED,
                       "method '%s' needs a checkpoint in float: give that which this package was "
                       "made from",
                       method->name);
    if (method->kind == PACKAGE) status = open_package(method, options, &s);
    if (method->kind == BASELINE) status = open_baseline(method, options, &s);
    if (status != STINT_OK) {
        st_subject_close(&s);
        return status;
    }
    *subject = s;
    return STINT_OK;
}

void st_subject_close(struct st_subject *subject) {
    st_baseline_close(subject->baseline);
    stint_model_close(subject->package);
    *subject = (struct st_subject){0};
}
