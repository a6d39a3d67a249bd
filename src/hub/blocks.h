// SPDX-License-Identifier: Apache-2.0
// A large file over several connections at once: blocks of it, handed over in order.
#ifndef ST_HUB_BLOCKS_H
#define ST_HUB_BLOCKS_H

#include "hub/web.h"

struct st_hub_blocks {
    const struct st_hub_web *web; // borrowed: its endpoint and token
    const char *url;
    uint64_t begin, end;
    // Takes the next bytes; false ends the fetch.
    bool (*take)(void *context, const char *data, size_t n);
    void *context;
};

// Fetches bytes `begin` to `end` as far as that succeeds. It needs a server that knows ranges, and
// what stopped it is not said: a single request for the rest shows that. Does nothing where less
// than two blocks are missing.
void st_hub_blocks_fetch(const struct st_hub_blocks *blocks);

#endif
