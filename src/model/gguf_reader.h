// SPDX-License-Identifier: Apache-2.0
// Keys of a GGUF file that begin with its architecture's name.
#ifndef ST_MODEL_GGUF_READER_H
#define ST_MODEL_GGUF_READER_H

#include "model/config.h"

struct st_gguf_reader {
    const struct st_gguf *gguf;
    char prefix[64];
};

struct st_reader_key {
    char text[160];
};

struct st_reader_key st_reader_key(const struct st_gguf_reader *reader, const char *key);
// The value of a key; *out stays where it is absent.
stint_status st_reader_size(const struct st_gguf_reader *reader, const char *key, uint32_t *out);
stint_status st_reader_number(const struct st_gguf_reader *reader, const char *key, double *out);
// The same of one value per layer, out [n]; one for all layers is also possible.
stint_status st_reader_sizes(const struct st_gguf_reader *reader, const char *key, uint32_t n,
                             uint32_t *out);

// Heads, caches, widths and inputs that differ between layers, once it is known which of them have
// a window (config_gguf_layers.c).
stint_status st_config_read_gguf_layers(const struct st_gguf_reader *reader,
                                        const struct st_checkpoint *checkpoint,
                                        struct st_config *config);

#endif
