// SPDX-License-Identifier: Apache-2.0
// Bytes as both files of DroidTask, [prompts, labels], and as an answer to one of its steps.
#include "eval/droidtask.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_files(const uint8_t *data, size_t size) {
    struct st_items items = {0};
    json_t *both = NULL;
    if (st_json_parse("both", data, size, &both) != STINT_OK) return;
    const struct st_droidtask files = {"prompts", "labels", json_array_get(both, 0),
                                       json_array_get(both, 1)};
    if (st_droidtask_read(&files, 0, &items) == STINT_OK)
        for (size_t i = 0; i < items.n; i++)
            if (items.items[i].n_choices != 2 || !*items.items[i].ending[0]) abort();
    st_items_free(&items);
    json_decref(both);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct st_droid_answer answer;
    char *text = malloc(size + 1);
    if (!text) abort();
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    st_droid_read(text, &answer);
    if (strlen(answer.text) >= ST_DROID_TEXT_BYTES) abort();
    if (!answer.found && st_droid_is(&answer, "0", "null")) abort();
    free(text);
    read_files(data, size);
    return 0;
}
