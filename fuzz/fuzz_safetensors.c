// SPDX-License-Identifier: Apache-2.0
// Bytes as a safetensors file: the reader answers with a status, and every tensor that it gives
// lies inside the file.
#include "format/safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned touched; // keeps the reads from being optimised away

static void touch(const struct st_tensors *tensors) {
    for (size_t i = 0; i < st_tensors_count(tensors); i++) {
        const struct st_tensor *t = st_tensors_at(tensors, i);
        const unsigned char *bytes = t->data;
        size_t measured = 0;
        touched += bytes[0] + bytes[t->bytes - 1];
        if (st_tensors_find(tensors, t->name) != t) abort();
        if (st_tensor_measure(t, &measured) != STINT_OK || measured != t->bytes) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct st_map map = {size ? data : NULL, size};
    struct st_tensors *tensors = NULL;
    if (st_tensors_open(0, &tensors) != STINT_OK) return 0;
    if (st_safetensors_read("fuzz", &map, tensors) == STINT_OK)
        touch(tensors);
    else if (strncmp(st_error_text(), "fuzz: ", 6) != 0)
        abort();
    st_tensors_close(tensors);
    return 0;
}
