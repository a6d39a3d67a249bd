// SPDX-License-Identifier: Apache-2.0
// /tokenize and /detokenize, with the fields of llama.cpp's server (content) and of vLLM's
// (prompt), and vLLM's /tokenizer_info.
#include "server/api/fields.h"
#include "server/api/handlers.h"
#include "server/api/request.h"

#include <string.h>

static const char *text_of(const json_t *body, struct st_problem *problem) {
    const char *text = NULL;
    if (!st_field_string(body, "content", &text, problem)) return NULL;
    if (text == NULL && !st_field_string(body, "prompt", &text, problem)) return NULL;
    if (text == NULL) st_refuse(problem, 400, "content", "'content' or 'prompt' is missing");
    return text;
}

static bool tokenize(const struct st_served *served, const json_t *body, struct st_call *call) {
    struct st_problem *problem = &call->problem;
    struct st_ids ids = {0};
    bool special = st_field(body, "prompt") != NULL; // as the two servers do
    const char *text = text_of(body, problem);
    if (text == NULL || !st_field_bool(body, "add_special", &special, problem) ||
        !st_field_bool(body, "add_special_tokens", &special, problem))
        return false;
    size_t n = strlen(text), max = st_tokenizer_max_bytes(served->tokenizer, served->context);
    if (n > max)
        return st_refuse(problem, 400, "content", "the text has %zu bytes; the maximum is %zu", n,
                         max);
    stint_status status =
        st_tokenizer_encode(served->tokenizer, text, n, special ? STINT_TOKENIZE_ADD_BOS : 0, &ids);
    st_json_raw(&call->reply, "{\"tokens\":[");
    for (size_t i = 0; i < ids.count; i++)
        st_json_format(&call->reply, i > 0 ? ",%d" : "%d", ids.data[i]);
    st_json_format(&call->reply, "],\"count\":%zu,\"max_model_len\":%zu}", ids.count,
                   served->context);
    st_ids_free(&ids);
    return status == STINT_OK || st_refuse_failure(problem, status, "content");
}

static bool detokenize(const struct st_served *served, const json_t *body, struct st_call *call) {
    struct st_problem *problem = &call->problem;
    const json_t *tokens = st_field(body, "tokens");
    size_t vocab = st_tokenizer_vocab(served->tokenizer);
    struct st_detokenizer state = {0};
    struct st_bytes text = {0};
    char piece[ST_PIECE_MAX_BYTES + 8];
    stint_status status = STINT_OK;
    if (!json_is_array(tokens))
        return st_refuse(problem, 400, "tokens", "'tokens' must be an array of token ids");
    for (size_t i = 0; i < json_array_size(tokens) && status == STINT_OK; i++) {
        const json_t *token = json_array_get(tokens, i);
        json_int_t id = json_integer_value(token);
        if (!json_is_integer(token) || id < 0 || (uint64_t)id >= vocab) {
            st_bytes_free(&text);
            return st_refuse(problem, 400, "tokens", "token %zu is not an id of 0 to %zu", i,
                             vocab - 1);
        }
        size_t n = st_detokenizer_push(&state, served->tokenizer, (int32_t)id,
                                       STINT_DETOKENIZE_SPECIAL, piece);
        status = st_bytes_append(&text, piece, n);
    }
    if (status == STINT_OK)
        status = st_bytes_append(&text, piece, st_detokenizer_finish(&state, piece));
    for (int i = 0; i < 2; i++) {
        st_json_raw(&call->reply, i == 0 ? "{\"content\":" : ",\"prompt\":");
        st_json_quote(&call->reply, text.count > 0 ? text.data : "", text.count);
    }
    st_json_raw(&call->reply, "}");
    st_bytes_free(&text);
    return status == STINT_OK || st_refuse_failure(problem, status, "tokens");
}

bool st_handle_tokenize(struct st_server *server, struct st_call *call) {
    (void)server;
    return tokenize(call->served, call->object, call);
}

bool st_handle_detokenize(struct st_server *server, struct st_call *call) {
    (void)server;
    return detokenize(call->served, call->object, call);
}

static void write_token(const struct st_served *served, const char *name, int32_t id,
                        struct st_json_text *out) {
    struct st_detokenizer state = {0};
    char text[ST_PIECE_MAX_BYTES + 8];
    st_json_format(out, "\"%s\":", name);
    if (id < 0) {
        st_json_raw(out, "null,");
        return;
    }
    size_t n = st_detokenizer_push(&state, served->tokenizer, id, STINT_DETOKENIZE_SPECIAL, text);
    st_json_quote(out, text, n);
    st_json_raw(out, ",");
}

bool st_handle_tokenizer_info(struct st_server *server, struct st_call *call) {
    const struct st_served *served = call->served;
    struct st_json_text *out = &call->reply;
    (void)server;
    st_json_raw(out, "{");
    write_token(served, "bos_token", st_tokenizer_bos(served->tokenizer), out);
    write_token(served, "eos_token", st_tokenizer_eos(served->tokenizer), out);
    st_json_raw(out, "\"chat_template\":");
    st_json_string_of(out, st_chat_template_text(served->chat));
    st_json_raw(out, "}");
    return true;
}
