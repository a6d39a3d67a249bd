// SPDX-License-Identifier: Apache-2.0
// Bytes as the name of a source, a line's end, and the hub's answer about it: what is taken stays
// below the model folder.
#include "hub/listing.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool true_here) {
    if (!true_here) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct st_hub_listing listing;
    static const struct st_hub_catalog none;
    const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
    if (end == NULL) return 0;
    size_t n = (size_t)(end - data);
    char *name = strndup((const char *)data, n);
    struct st_hub_source source;
    if (name != NULL && st_hub_source_parse(&none, name, &source) == STINT_OK) {
        require(*source.target == 0 || st_hub_path_safe(source.target));
        require(*source.wanted == 0 || st_hub_path_safe(source.wanted));
        require(*source.repo == 0 || st_hub_path_safe(source.repo));
        if (st_hub_listing_read((const char *)end + 1, size - n - 1, &source, &listing) ==
            STINT_OK) {
            require(listing.count > 0 && listing.count <= ST_HUB_MAX_FILES);
            for (size_t i = 0; i < listing.count; i++)
                require(st_hub_path_safe(listing.files[i].path));
        }
    }
    free(name);
    return 0;
}
