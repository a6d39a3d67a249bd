// SPDX-License-Identifier: Apache-2.0
#include "server/api/infill.h"

#include <string.h>

enum { PREFIX, SUFFIX, MIDDLE, N_MARKS };

// The end of a file is the end of the middle, too.
static const struct family {
    const char *marks[N_MARKS];
    const char *stops[ST_REQUEST_FORMAT_STOPS];
} families[] = {
    // Qwen2.5-Coder, CodeGemma
    {{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
     {"<|endoftext|>", "<|fim_pad|>", "<|file_sep|>", "<|file_separator|>"}},
    // StarCoder
    {{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
     {"<|endoftext|>", "<fim_pad>", "<file_sep>", "<filename>"}},
    // DeepSeek-Coder
    {{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"}, {"<｜end▁of▁sentence｜>"}},
};

static const struct family *find(const struct st_served *served, int32_t marks[N_MARKS]) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        bool all = true;
        for (size_t k = 0; k < N_MARKS; k++) {
            marks[k] = st_tokenizer_find(served->tokenizer, families[i].marks[k]);
            all = all && marks[k] >= 0;
        }
        if (all) return &families[i];
    }
    return NULL;
}

static stint_status append(const struct st_served *served, const char *text, uint32_t flags,
                           struct st_ids *ids) {
    return st_tokenizer_encode(served->tokenizer, text, strlen(text), flags, ids);
}

bool st_infill_prompt(const struct st_served *served, struct st_request *request,
                      struct st_ids *ids, struct st_problem *problem) {
    int32_t marks[N_MARKS];
    const struct family *family = find(served, marks);
    const char *prefix = json_string_value(request->prompt);
    if (family == NULL)
        return st_refuse(problem, 400, "suffix",
                         "'suffix' is not supported: the model has no marks for what is between "
                         "two texts");
    for (size_t i = 0; i < ST_REQUEST_FORMAT_STOPS && family->stops[i] != NULL; i++)
        if (st_tokenizer_find(served->tokenizer, family->stops[i]) >= 0)
            request->stops[request->n_stops++] = family->stops[i];
    stint_status status = append(served, "", STINT_TOKENIZE_ADD_BOS, ids);
    if (status == STINT_OK) status = st_ids_append(ids, marks[PREFIX]);
    if (status == STINT_OK) status = append(served, prefix, 0, ids);
    if (status == STINT_OK) status = st_ids_append(ids, marks[SUFFIX]);
    if (status == STINT_OK) status = append(served, request->suffix, 0, ids);
    if (status == STINT_OK) status = st_ids_append(ids, marks[MIDDLE]);
    return status == STINT_OK || st_refuse_failure(problem, status, "prompt");
}
