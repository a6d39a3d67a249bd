// SPDX-License-Identifier: Apache-2.0
// Fetches one file. It grows as PATH.part, which a later fetch continues, and gets its name when it
// is complete, has its checksum and is on the disk.
#ifndef ST_HUB_FETCH_H
#define ST_HUB_FETCH_H

#include "hub/web.h"

struct st_hub_fetch {
    const char *url, *path;
    const char *sha256; // 64 hexadecimal digits; "": not known
    uint64_t bytes;     // 0: not known
    stint_progress_fn *progress;
    void *progress_context;
};

// A cut connection is continued, as long as each attempt brings something. STINT_E_IO, E_FORMAT
// (another checksum, or more bytes than there should be), E_NOMEM.
stint_status st_hub_fetch(struct st_hub_web *web, const struct st_hub_fetch *fetch);

#endif
