// SPDX-License-Identifier: Apache-2.0
// /v1/embeddings: the texts of a request become one job of the request scheduler.
#include "server/api/handlers.h"
#include "server/api/protocol.h"
#include "server/api/state.h"

#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_TEXTS = 2048,      // as OpenAI has it
    MAX_NUMBERS = 1 << 20, // of all embeddings of a request
};

// The texts of a request, one after the other.
struct texts {
    struct st_ids ids;
    size_t *lengths; // [n]
    size_t n;
};

static bool refuse_length(const struct st_served *served, size_t n, const char *unit,
                          struct st_problem *problem) {
    st_refuse(problem, 400, "input",
              "a text has %zu %s, and the context has room for %zu tokens; shorten it, or start "
              "the server with a larger --ctx",
              n, unit, served->context);
    problem->code = "context_length_exceeded";
    return false;
}

static bool add_text(const struct st_served *served, const json_t *text, struct texts *texts,
                     struct st_problem *problem) {
    size_t n = json_string_length(text);
    if (n > st_tokenizer_max_bytes(served->tokenizer, served->context))
        return refuse_length(served, n, "bytes", problem);
    stint_status status =
        st_tokenizer_encode(served->tokenizer, json_string_value(text), n,
                            STINT_TOKENIZE_ADD_BOS | STINT_TOKENIZE_ADD_END, &texts->ids);
    return status == STINT_OK || st_refuse_failure(problem, status, "input");
}

static bool add_ids(const struct st_served *served, const json_t *list, struct texts *texts,
                    struct st_problem *problem) {
    size_t vocab = st_tokenizer_vocab(served->tokenizer);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        int64_t id = json_is_integer(item) ? json_integer_value(item) : -1;
        if (id < 0 || (uint64_t)id >= vocab)
            return st_refuse(problem, 400, "input", "'input': token ids are integers from 0 to %zu",
                             vocab - 1);
        if (st_ids_append(&texts->ids, (int32_t)id) != STINT_OK)
            return st_refuse_failure(problem, STINT_E_NOMEM, NULL);
    }
    return true;
}

static bool add(const struct st_served *served, const json_t *item, struct texts *texts,
                struct st_problem *problem) {
    size_t before = texts->ids.count;
    bool ok = json_is_string(item)  ? add_text(served, item, texts, problem)
              : json_is_array(item) ? add_ids(served, item, texts, problem)
                                    : st_refuse(problem, 400, "input",
                                                "'input' must be a text, an array of texts, token "
                                                "ids, or an array of those");
    size_t n = texts->ids.count - before;
    bool empty = n == 0 || (json_is_string(item) && json_string_length(item) == 0);
    if (ok && empty) ok = st_refuse(problem, 400, "input", "a text of 'input' is empty");
    if (ok && n > served->context) ok = refuse_length(served, n, "tokens", problem);
    texts->lengths[texts->n++] = n;
    return ok;
}

static bool read_texts(const struct st_served *served, const json_t *input, size_t width,
                       struct texts *texts, struct st_problem *problem) {
    bool many = json_is_array(input) && !json_is_integer(json_array_get(input, 0));
    size_t n = many ? json_array_size(input) : 1;
    size_t max = MAX_NUMBERS / width < MAX_TEXTS ? MAX_NUMBERS / width : MAX_TEXTS;
    if (input == NULL || n == 0) return st_refuse(problem, 400, "input", "'input' is missing");
    if (n > max)
        return st_refuse(problem, 400, "input",
                         "'input' has %zu texts; of this model %zu can be embedded at once", n,
                         max);
    texts->lengths = calloc(n, sizeof *texts->lengths);
    if (texts->lengths == NULL) return st_refuse(problem, 503, NULL, "not enough memory");
    for (size_t i = 0; i < n; i++)
        if (!add(served, many ? json_array_get(input, i) : input, texts, problem)) return false;
    return true;
}

static bool read_form(const json_t *body, size_t width, struct st_response_vectors *vectors,
                      struct st_problem *problem) {
    const char *format = "float";
    uint32_t n = (uint32_t)width;
    if (!st_field_string(body, "encoding_format", &format, problem) ||
        !st_field_uint(body, "dimensions", 1, n, &n, problem))
        return false;
    vectors->base64 = strcmp(format, "base64") == 0;
    vectors->width = width;
    vectors->dimensions = n;
    return vectors->base64 || strcmp(format, "float") == 0 ||
           st_refuse(problem, 400, "encoding_format",
                     "'encoding_format' must be \"float\" or \"base64\"");
}

static bool start(struct st_server *server, json_t *body, struct st_call *call) {
    const struct st_served *served = call->served;
    struct st_request request = {.body = body, .n = 1, .best_of = 1};
    struct st_response response = {.model = served->name,
                                   .protocol =
                                       call->protocol ? call->protocol : &st_protocol_embeddings};
    struct texts texts = {0};
    stint_model_info info = {.size = sizeof info};
    struct st_problem *problem = &call->problem;
    stint_model_describe(served->model, &info);
    bool ok = read_form(body, info.embedding, &response.vectors, problem) &&
              read_texts(served, st_field(body, "input"), info.embedding, &texts, problem);
    response.vectors.n = texts.n;
    if (ok) {
        struct st_answer_prompt prompt = {texts.ids.data, texts.ids.count};
        ok = st_answer_open(&(struct st_answer_options){.served = served,
                                                        .metrics = server->metrics,
                                                        .response = &response,
                                                        .request = &request,
                                                        .prompts = &prompt,
                                                        .n_prompts = 1,
                                                        .texts = texts.lengths,
                                                        .owner = call->owner},
                            &call->answer, problem);
    }
    st_request_free(&request);
    st_ids_free(&texts.ids);
    free(texts.lengths);
    return ok;
}

bool st_handle_embed(struct st_server *server, struct st_call *call) {
    json_t *body;
    return st_call_body(call, &body, &call->problem) && start(server, body, call);
}

// ---- Responses

// So many digits that the same float is read again.
static void write_numbers(const float *vector, size_t n, struct st_json_text *out) {
    st_json_raw(out, "[");
    for (size_t i = 0; i < n; i++) st_json_format(out, i ? ",%.9g" : "%.9g", (double)vector[i]);
    st_json_raw(out, "]");
}

// The floats as they lie in memory, which is little-endian.
static void write_base64(const float *vector, size_t n, struct st_json_text *out) {
    enum { PIECE = 192 }; // floats, whose bytes are whole groups of three
    char text[BASE64_ENCODE_RAW_LENGTH(PIECE * sizeof(float))];
    st_json_raw(out, "\"");
    for (size_t i = 0, m; i < n; i += m) {
        m = n - i < PIECE ? n - i : PIECE;
        base64_encode_raw(text, m * sizeof(float), (const uint8_t *)(vector + i));
        st_json_rawn(out, text, BASE64_ENCODE_RAW_LENGTH(m * sizeof(float)));
    }
    st_json_raw(out, "\"");
}

void st_response_vector(const struct st_response_vectors *vectors, size_t i,
                        struct st_json_text *out) {
    const float *vector = vectors->data + i * vectors->width;
    if (vectors->base64)
        write_base64(vector, vectors->dimensions, out);
    else
        write_numbers(vector, vectors->dimensions, out);
}

static void write_whole(const struct st_response *response, const struct st_transcript *choices,
                        size_t n_choices, const struct st_response_usage *usage,
                        struct st_json_text *out) {
    (void)choices;
    (void)n_choices;
    st_json_raw(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < response->vectors.n; i++) {
        st_json_raw(out, i > 0 ? "," : "");
        st_json_format(out, "{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", i);
        st_response_vector(&response->vectors, i, out);
        st_json_raw(out, "}");
    }
    st_json_raw(out, "],\"model\":");
    st_json_string_of(out, response->model);
    st_json_format(out, ",\"usage\":{\"prompt_tokens\":%zu,\"total_tokens\":%zu}}",
                   usage->prompt_tokens, usage->prompt_tokens);
}

const struct st_protocol st_protocol_embeddings = {.whole = write_whole,
                                                   .problem = st_problem_write};
