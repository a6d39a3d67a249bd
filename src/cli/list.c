// SPDX-License-Identifier: Apache-2.0
// stint list and stint rm: the models of the model folder.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/output.h"
#include "hub/catalog.h"
#include "hub/store.h"

#include <stdlib.h>
#include <string.h>

static const struct st_cli_option rows[] = {{.name = NULL}};

static bool is_here(const struct st_hub_models *models, const char *name) {
    for (size_t i = 0; i < models->count; i++)
        if (strcmp(models->items[i].name, name) == 0 && models->items[i].complete) return true;
    return false;
}

static void print_text(const struct st_hub_models *models, const struct st_hub_catalog *catalog) {
    char size[ST_CLI_SIZE_BYTES];
    st_cli_title("Here");
    for (size_t i = 0; i < models->count; i++) {
        const struct st_hub_model *model = &models->items[i];
        printf("  %-24s %10s  %s\n", model->name, st_cli_size(model->bytes, size),
               model->complete ? model->path : "not complete: 'stint pull' continues it");
    }
    if (models->count == 0) printf("  nothing yet\n");
    st_cli_title("\nTried with stint: 'stint pull NAME' fetches one");
    for (size_t i = 0; i < catalog->count; i++) {
        const struct st_hub_entry *entry = &catalog->entries[i];
        if (is_here(models, entry->name)) continue;
        printf("  %-24s %10s  %s (%s)\n", entry->name, st_cli_size(entry->bytes, size),
               entry->about, entry->licence);
    }
}

static bool print_object(const struct st_cli_command *command, const struct st_hub_models *models,
                         const struct st_hub_catalog *catalog) {
    char *folder;
    if (st_hub_folder(&folder) != STINT_OK) return st_cli_failed(command) == ST_CLI_DONE;
    json_t *here = json_array(), *tested = json_array();
    for (size_t i = 0; i < models->count; i++) {
        const struct st_hub_model *model = &models->items[i];
        json_array_append_new(here, json_pack("{s:s, s:s, s:I, s:b}", "name", model->name, "path",
                                              model->path, "bytes", (json_int_t)model->bytes,
                                              "complete", (int)model->complete));
    }
    for (size_t i = 0; i < catalog->count; i++) {
        const struct st_hub_entry *entry = &catalog->entries[i];
        json_array_append_new(tested, json_pack("{s:s, s:s, s:I, s:s, s:s, s:s}", "name",
                                                entry->name, "source", entry->source, "bytes",
                                                (json_int_t)entry->bytes, "licence", entry->licence,
                                                "sha256", entry->sha256, "about", entry->about));
    }
    json_t *object =
        json_pack("{s:s, s:o, s:o}", "folder", folder, "models", here, "tested", tested);
    free(folder);
    return st_cli_print_json(command->name, object);
}

static int list(const struct st_cli_command *command, void *target) {
    const struct st_cli_common *options = target;
    struct st_hub_models models = {0};
    struct st_hub_catalog *catalog = NULL;
    bool ok = st_hub_catalog_load(&catalog) == STINT_OK && st_hub_list(&models) == STINT_OK;
    if (!ok)
        st_cli_failed(command);
    else if (options->json)
        ok = print_object(command, &models, catalog);
    else
        print_text(&models, catalog);
    st_hub_models_free(&models);
    free(catalog);
    return ok ? ST_CLI_DONE : ST_CLI_FAILED;
}

static int rm(const struct st_cli_command *command, void *target) {
    const struct st_cli_common *options = target;
    char size[ST_CLI_SIZE_BYTES];
    uint64_t bytes;
    if (st_hub_remove(options->model, &bytes) != STINT_OK) return st_cli_failed(command);
    printf("%s: removed, %s\n", options->model, st_cli_size(bytes, size));
    return ST_CLI_DONE;
}

const struct st_cli_command st_cli_list_command = {
    .name = "list",
    .summary = "the models that are here, and those to fetch",
    .about = "Lists the models of the model folder, then those that stint was tried with, with "
             "size and licence.",
    .example = "stint list",
    .common = ST_CLI_COMMON_JSON,
    .options = rows,
    .options_bytes = sizeof(struct st_cli_common),
    .run = list};

const struct st_cli_command st_cli_rm_command = {
    .name = "rm",
    .summary = "remove a fetched model",
    .operand = "NAME",
    .about = "Removes a model of the model folder, also one that is not complete.",
    .example = "stint rm smollm2-135m",
    .options = rows,
    .options_bytes = sizeof(struct st_cli_common),
    .run = rm};
