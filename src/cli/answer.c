// SPDX-License-Identifier: Apache-2.0
#include "cli/answer.h"

#include "cli/file.h"
#include "cli/output.h"
#include "cli/sampling.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 16 << 20 };

// "ID=VALUE"
static bool read_bias(const char *text, stint_logit_bias *bias) {
    char *end;
    long id = strtol(text, &end, 10);
    if (end == text || *end != '=' || id < 0 || id > INT32_MAX) return false;
    const char *value = end + 1;
    bias->id = (int32_t)id;
    bias->value = strtof(value, &end);
    return end != value && *end == 0;
}

static bool read_biases(const struct st_cli_command *command, const struct st_cli_texts *texts,
                        struct st_cli_answer *answer) {
    for (size_t i = 0; i < texts->count; i++) {
        if (read_bias(texts->values[i], &answer->biases[i])) continue;
        st_cli_error(command->name,
                     "--logit-bias: '%s' is not TOKEN=VALUE, such as 42=-5 or "
                     "42=-inf",
                     texts->values[i]);
        return false;
    }
    answer->sampling.biases = answer->biases;
    answer->sampling.n_biases = texts->count;
    return true;
}

// JSON from the command line itself, or from a file.
static char *read_json(const struct st_cli_command *command, const char *value) {
    size_t n;
    const char *begin = value + strspn(value, " \t\r\n");
    bool is_text = *begin == '{' || *begin == '[' || strcmp(begin, "true") == 0;
    if (!is_text) return st_cli_read_all(command->name, value, MAX_BYTES, &n);
    char *copy = strdup(value);
    if (copy == NULL) st_cli_error(command->name, "not enough memory");
    return copy;
}

int st_cli_answer_open(const struct st_cli_command *command, const struct st_cli_common *common,
                       struct st_cli_answer *a) {
    a->sampling = st_cli_sampling(common, NULL);
    if (!read_biases(command, &common->biases, a)) return ST_CLI_USAGE;
    if (common->json_schema != NULL) {
        a->schema = read_json(command, common->json_schema);
        if (a->schema == NULL) return ST_CLI_FAILED;
    }
    if (common->tools != NULL) {
        a->tools = read_json(command, common->tools);
        if (a->tools == NULL) return ST_CLI_FAILED;
    }
    a->generation = (stint_generation){.size = sizeof a->generation,
                                       .sampling = &a->sampling,
                                       .stops = common->stops.values,
                                       .n_stops = common->stops.count,
                                       .json_schema = a->schema,
                                       .tools = a->tools,
                                       .tool = common->tool};
    a->chat = (stint_chat_options){
        .size = sizeof a->chat, .tools = a->tools, .thinking = (stint_thinking)common->thinking};
    return ST_CLI_GO;
}

void st_cli_answer_adopt(const struct st_cli_common *common, const stint_model *model,
                         struct st_cli_answer *a) {
    stint_sampling sampling = st_cli_sampling(common, model);
    sampling.biases = a->sampling.biases;
    sampling.n_biases = a->sampling.n_biases;
    a->sampling = sampling;
}

void st_cli_answer_free(struct st_cli_answer *a) {
    free(a->schema);
    free(a->tools);
    *a = (struct st_cli_answer){0};
}
