// SPDX-License-Identifier: Apache-2.0
// Ollama's /api/embed, and /api/embeddings, which is older and takes one text.
#include "server/api/fields.h"
#include "server/protocol/ollama.h"

static const char *const idle[] = {"keep_alive", NULL};
static const char *const embed_used[] = {"model", "input", "dimensions", "options", NULL};
static const struct st_known_refused embed_refused[] = {{"truncate", "texts are not cut"},
                                                        {NULL, NULL}};
const struct st_known st_known_ollama_embed = {embed_used, idle, embed_refused, false};

static const char *const embeddings_used[] = {"model", "prompt", "options", NULL};
const struct st_known st_known_ollama_embeddings = {embeddings_used, idle, NULL, false};

static bool take(const json_t *body, const char *input, json_t *ours, struct st_problem *problem) {
    const char *const names[][2] = {{input, "input"}, {"dimensions", "dimensions"}};
    const json_t *options = st_field(body, "options");
    if (options != NULL && !json_is_object(options))
        return st_refuse(problem, 400, "options", "'options' must be an object");
    if (!st_known_check(options, &st_known_ollama_machine, "options", problem)) return false;
    return st_ollama_model(body, ours, problem) &&
           (st_protocol_copy(body, names, 2, ours) || st_protocol_no_memory(problem));
}

static bool translate(const json_t *body, const char *input, json_t **made,
                      struct st_problem *problem) {
    json_t *ours = json_object();
    bool ok = ours != NULL ? take(body, input, ours, problem) : st_protocol_no_memory(problem);
    if (ok)
        *made = ours;
    else
        json_decref(ours);
    return ok;
}

static bool translate_embed(const json_t *body, json_t **made, struct st_problem *problem) {
    return translate(body, "input", made, problem);
}

static bool translate_embeddings(const json_t *body, json_t **made, struct st_problem *problem) {
    return translate(body, "prompt", made, problem);
}

static void whole_embed(const struct st_response *response, const struct st_transcript *choices,
                        size_t n_choices, const struct st_response_usage *usage,
                        struct st_json_text *out) {
    (void)choices;
    (void)n_choices;
    st_json_raw(out, "{\"model\":");
    st_json_string_of(out, response->model);
    st_json_raw(out, ",\"embeddings\":[");
    for (size_t i = 0; i < response->vectors.n; i++) {
        st_json_raw(out, i > 0 ? "," : "");
        st_response_vector(&response->vectors, i, out);
    }
    st_json_format(out, "],\"prompt_eval_count\":%zu}", usage->prompt_tokens);
}

static void whole_embeddings(const struct st_response *response,
                             const struct st_transcript *choices, size_t n_choices,
                             const struct st_response_usage *usage, struct st_json_text *out) {
    (void)choices;
    (void)n_choices;
    (void)usage;
    st_json_raw(out, "{\"embedding\":");
    st_response_vector(&response->vectors, 0, out);
    st_json_raw(out, "}");
}

const struct st_protocol st_protocol_ollama_embed = {
    .translate = translate_embed, .whole = whole_embed, .problem = st_ollama_problem};

const struct st_protocol st_protocol_ollama_embeddings = {
    .translate = translate_embeddings, .whole = whole_embeddings, .problem = st_ollama_problem};
