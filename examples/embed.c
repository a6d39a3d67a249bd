// SPDX-License-Identifier: Apache-2.0
// A program that embeds stint: opens a model, streams a continuation, closes.
//   example_embed MODEL "PROMPT"
//   cc embed.c $(pkg-config --cflags --libs stint)
#include <stint.h>

#include <stdio.h>
#include <string.h>

static bool print(void *context, const stint_piece *piece) {
    size_t n = piece->n_bytes;
    return fwrite(piece->text, 1, n, context) == n && fflush(context) == 0;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "use: %s MODEL PROMPT\n", argv[0]);
        return 2;
    }
    stint_model *model = NULL;
    stint_session *session = NULL;
    int32_t prompt[1024];
    size_t n_prompt;

    stint_sampling sampling = {
        .size = sizeof sampling, .temperature = 0.7f, .top_p = 0.9f, .seed = 7};
    stint_generation options = {.size = sizeof options,
                                .n_tokens = 48,
                                .sampling = &sampling,
                                .text = print,
                                .context = stdout};

    stint_status status = stint_model_open(argv[1], NULL, &model);
    if (status == STINT_OK) status = stint_session_open(model, NULL, &session);
    if (status == STINT_OK)
        status = stint_tokenize(stint_model_tokenizer(model), argv[2], strlen(argv[2]),
                                STINT_TOKENIZE_ADD_BOS, prompt, 1024, &n_prompt);
    if (status == STINT_OK)
        status = stint_generate(session, prompt, n_prompt, &options, NULL, 0, NULL);
    if (status != STINT_OK)
        fprintf(stderr, "%s\n", stint_error_text());
    else
        putchar('\n');
    stint_session_close(session);
    stint_model_close(model);
    return status == STINT_OK ? 0 : 1;
}
