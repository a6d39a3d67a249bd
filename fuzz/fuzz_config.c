// SPDX-License-Identifier: Apache-2.0
// Bytes as config.json: whatever they say, the reader answers with a status, and a config that it
// accepts is usable.
#include "model/config.h"
#include "model/rope.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct st_config config;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct st_checkpoint checkpoint = {.source = ST_SOURCE_HF};
    if (st_json_parse("config.json", data, size, &checkpoint.config) != STINT_OK) return 0;
    if (st_config_read(&checkpoint, &config) == STINT_OK) {
        double frequencies[ST_MAX_HEAD_DIM / 2], magnitude;
        st_rope_frequencies(&config.rope, config.rope_dims, 100000, frequencies, &magnitude);
        st_rope_frequencies(&config.rope_local, config.rope_dims, 1, frequencies, &magnitude);
    }
    json_decref(checkpoint.config);
    return 0;
}
