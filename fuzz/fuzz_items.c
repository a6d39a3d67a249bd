// SPDX-License-Identifier: Apache-2.0
// Bytes as the file of every data set: a status, and whole items where it is a good one.
#include "eval/items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned touched; // keeps the reads from being optimised away

static void check(const struct st_items *items) {
    for (size_t i = 0; i < items->n; i++) {
        const struct st_item *item = &items->items[i];
        if (item->n_choices == 0 || item->answer >= item->n_choices) abort();
        for (uint32_t c = 0; c < item->n_choices; c++)
            touched += (unsigned)(strlen(item->context[c]) + strlen(item->ending[c]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static st_items_read_fn *const readers[] = {st_items_read_lambada,    st_items_read_hellaswag,
                                                st_items_read_winogrande, st_items_read_openbookqa,
                                                st_items_read_arc,        st_items_read_piqa,
                                                st_items_read_mmlu,       st_items_read_prompts,
                                                st_items_read_longqa,     st_items_read_mt_bench};
    char path[64];
    int file = memfd_create("items", 0);
    if (file < 0 || (size && write(file, data, size) != (ssize_t)size)) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        struct st_items items = {0};
        if (readers[i](path, 0, &items) == STINT_OK) check(&items);
        st_items_free(&items);
    }
    close(file);
    return 0;
}
