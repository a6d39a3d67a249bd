// SPDX-License-Identifier: Apache-2.0
// How a checkpoint says that a text's hidden states become its embedding: the folder 1_Pooling and
// modules.json of sentence-transformers, or a GGUF's *.pooling_type.
#ifndef ST_MODEL_POOLING_H
#define ST_MODEL_POOLING_H

#include "format/checkpoint.h"
#include "format/files.h"
#include "stint.h"

struct st_pooling {
    stint_pooling kind; // DEFAULT: the checkpoint says nothing
    char refused[96];   // what it needs beyond that and does not get; "": nothing
};

// A pooling that is not known is no reason not to open a model: it goes to `refused`.
stint_status st_pooling_read(const struct st_checkpoint *checkpoint, const struct st_files *files,
                             struct st_pooling *pooling);

#endif
