// SPDX-License-Identifier: Apache-2.0
#include "prepare/calibration_tokens.h"

#include "base/buffer.h"
#include "base/log.h"
#include "base/size.h"
#include "prepare/calibration_text.h"

#include <string.h>

enum { RANDOM_TOKENS = 4 * ST_CALIBRATION_SEQUENCE };

size_t st_calibration_sequence(const struct stint_model *model) {
    return st_min(ST_CALIBRATION_SEQUENCE, model->config.context);
}

static stint_status copy_ids(const struct stint_model *model, const int32_t *ids, size_t n,
                             struct st_ids *out) {
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= model->config.vocab)
            return st_fail(STINT_E_ARG, "calibration token %zu is %d: the vocabulary has %u", i,
                           ids[i], model->config.vocab);
        ST_TRY(st_ids_append(out, ids[i]));
    }
    return STINT_OK;
}

// The same ids in every run.
static stint_status random_ids(const struct stint_model *model, size_t n, struct st_ids *out) {
    uint64_t state = 1;
    st_log(STINT_LOG_WARNING,
           "no tokenizer: calibrating on random tokens; give token ids of a real "
           "text for better scales");
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ST_TRY(st_ids_append(out, (int32_t)((state >> 33) % model->config.vocab)));
    }
    return STINT_OK;
}

// Cuts `all` into sequences that begin with `first`; at most n tokens in total.
static stint_status cut(const struct stint_model *model, const struct st_ids *first,
                        const struct st_ids *all, size_t n, struct st_ids *out) {
    size_t sequence = st_calibration_sequence(model);
    size_t n_first = first->count < sequence ? first->count : 0;
    for (size_t i = 0; i < all->count && out->count < n;) {
        if (out->count % sequence == 0) ST_TRY(copy_ids(model, first->data, n_first, out));
        ST_TRY(copy_ids(model, all->data + i++, 1, out));
    }
    return STINT_OK;
}

static stint_status encode(const struct stint_model *model, const char *text, size_t n_bytes,
                           size_t n, struct st_ids *out) {
    struct st_ids first = {0}, all = {0};
    const struct stint_tokenizer *t = model->tokenizer;
    stint_status status = st_tokenizer_encode(t, "", 0, STINT_TOKENIZE_ADD_BOS, &first);
    if (status == STINT_OK)
        status = st_tokenizer_encode(t, text, n_bytes, STINT_TOKENIZE_PLAIN, &all);
    if (status == STINT_OK) status = cut(model, &first, &all, n, out);
    st_ids_free(&first);
    st_ids_free(&all);
    if (status != STINT_OK || out->count) return status;
    return st_fail(STINT_E_ARG, "the calibration text is empty");
}

stint_status st_calibration_tokens(const struct stint_model *model,
                                   const struct st_calibration_input *input, struct st_ids *ids) {
    size_t max = input->max ? input->max : ST_CALIBRATION_TOKENS;
    if (input->ids) {
        if (input->n_ids == 0) return st_fail(STINT_E_ARG, "there are no calibration tokens");
        return copy_ids(model, input->ids, st_min(input->n_ids, max), ids);
    }
    if (input->text && !model->tokenizer)
        return st_fail(STINT_E_ARG, "this model has no tokenizer: calibrate it on token ids");
    if (input->text) return encode(model, input->text, input->text_bytes, max, ids);
    if (!model->tokenizer) return random_ids(model, st_min(max, RANDOM_TOKENS), ids);
    return encode(model, st_calibration_text, strlen(st_calibration_text), max, ids);
}
