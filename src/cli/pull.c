// SPDX-License-Identifier: Apache-2.0
// stint pull: fetches a model, so that its name stands for it.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "hub/pull.h"

#include <stdlib.h>

static const struct st_cli_option rows[] = {{.name = NULL}};

static bool print_object(const struct st_cli_command *command, const struct st_hub_pulled *pulled) {
    return st_cli_print_json(command->name,
                             json_pack("{s:s, s:s, s:s, s:I}", "name", pulled->name, "path",
                                       pulled->path, "licence", pulled->licence, "fetched_bytes",
                                       (json_int_t)pulled->bytes));
}

static void print_text(const struct st_hub_pulled *pulled) {
    char size[ST_CLI_SIZE_BYTES];
    const char *licence = pulled->licence;
    printf("%s: %s%s%s\n", pulled->name,
           pulled->bytes > 0 ? st_cli_size(pulled->bytes, size) : "was here already",
           *licence != 0 ? ", licence " : "", licence);
    printf("%s\n", pulled->path);
    printf("stint chat %s\n", pulled->name);
}

static int run(const struct st_cli_command *command, void *target) {
    const struct st_cli_common *options = target;
    struct st_cli_progress progress = {0};
    struct st_hub_pulled pulled;
    stint_status status = st_hub_pull(options->model, st_cli_progress_show, &progress, &pulled);
    st_cli_progress_end(&progress);
    if (status != STINT_OK) {
        int failed = st_cli_failed(command);
        return status == STINT_E_ARG ? ST_CLI_USAGE : failed;
    }
    bool ok = true;
    if (options->json)
        ok = print_object(command, &pulled);
    else
        print_text(&pulled);
    free(pulled.path);
    return ok ? ST_CLI_DONE : ST_CLI_FAILED;
}

const struct st_cli_command st_cli_pull_command = {
    .name = "pull",
    .summary = "fetch a model from the Hugging Face hub or a URL",
    .operand = "NAME",
    .about =
        "Fetches a model into the model folder, where its name stands for it in every command. "
        "NAME is one of 'stint list', hf:ORG/REPO, hf:ORG/REPO:FILE (a part of a .gguf file's "
        "name will do, such as Q4_K_M), or the URL of a .gguf file. What was interrupted is "
        "continued. Environment: STINT_MODELS is the model folder (else ~/.local/share/stint/"
        "models); HF_TOKEN or ~/.cache/huggingface/token opens models that are not public; "
        "HF_ENDPOINT is another hub; https_proxy a proxy.",
    .example = "stint pull smollm2-135m",
    .common = ST_CLI_COMMON_JSON,
    .options = rows,
    .options_bytes = sizeof(struct st_cli_common),
    .run = run};
