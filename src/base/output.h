// SPDX-License-Identifier: Apache-2.0
// A stream into a file that is written completely or not at all; see base/temporary.h. What is not
// a regular file (a pipe, /dev/null) is written as it is.
#ifndef ST_BASE_OUTPUT_H
#define ST_BASE_OUTPUT_H

#include "base/temporary.h"

#include <stdio.h>

struct st_output {
    FILE *file; // NULL: closed
    char *path;
    struct st_temporary temporary;
};

// STINT_E_IO, E_NOMEM; end it with st_output_close.
stint_status st_output_open(const char *path, mode_t mode, struct st_output *output);
// Gives the file its name if `keep` and everything was written, else removes it. What has been kept
// survives a power cut. STINT_E_IO if `keep`. Accepts a zeroed one.
stint_status st_output_close(struct st_output *output, bool keep);

#endif
