// SPDX-License-Identifier: Apache-2.0
// An answer that is JSON and follows a schema, with how sure the model was of each token.
//   example_schema MODEL "PROMPT" 'SCHEMA'
//   cc schema.c $(pkg-config --cflags --libs stint) -lm
#include <stint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

// The text goes to standard output, the least likely token's probability to `context`.
static bool take(void *context, const stint_piece *piece) {
    float *min = context;
    if (piece->id >= 0 && piece->logprob < *min) *min = piece->logprob;
    return fwrite(piece->text, 1, piece->n_bytes, stdout) == piece->n_bytes;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "use: %s MODEL PROMPT SCHEMA\n", argv[0]);
        return 2;
    }
    stint_model *model = NULL;
    stint_session *session = NULL;
    int32_t prompt[1024];
    size_t n_prompt;
    float min = 0.0f;

    stint_generation options = {.size = sizeof options,
                                .n_tokens = 200,
                                .json_schema = argv[3],
                                .logprobs = true,
                                .text = take,
                                .context = &min};
    stint_generation_result result = {.size = sizeof result};

    stint_status status = stint_model_open(argv[1], NULL, &model);
    if (status == STINT_OK) status = stint_session_open(model, NULL, &session);
    if (status == STINT_OK)
        status = stint_tokenize(stint_model_tokenizer(model), argv[2], strlen(argv[2]),
                                STINT_TOKENIZE_ADD_BOS, prompt, 1024, &n_prompt);
    if (status == STINT_OK)
        status = stint_generate(session, prompt, n_prompt, &options, NULL, 0, &result);
    if (status != STINT_OK)
        fprintf(stderr, "%s\n", stint_error_text());
    else
        printf("\n%zu tokens, ended by %s; the least likely one had %.2g\n",
               result.generated_tokens, stint_stop_reason_name(result.stop_reason),
               exp((double)min));
    stint_session_close(session);
    stint_model_close(model);
    return status == STINT_OK ? 0 : 1;
}
