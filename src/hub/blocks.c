// SPDX-License-Identifier: Apache-2.0
// Block i is fetched by part i % N_PARTS. The first block that is missing is handed over while it
// comes, the others wait in memory, so that a file that is cut off has no gaps.
#include "hub/blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_PARTS = 4, BLOCK_BYTES = 8 << 20, POLL_MS = 1000 };

struct part {
    struct st_hub_web web; // a connection of its own
    char *data;
    uint64_t begin;
    size_t size, have, given; // bytes of the block: all, received, handed over
    bool busy; // its request has not ended
};

struct fetch {
    const struct st_hub_blocks *blocks;
    CURLM *multi;
    struct part parts[N_PARTS];
    uint64_t asked, given; // up to here
    bool cut;              // a request failed: no further ones
    bool failed;           // on our side
};

static struct part *part_of(struct fetch *f, uint64_t begin) {
    return &f->parts[(begin - f->blocks->begin) / BLOCK_BYTES % N_PARTS];
}

// Whether this is the part of the file that was asked for.
static bool is_range(const struct part *part) {
    long status = 0;
    struct curl_header *range;
    curl_easy_getinfo(part->web.curl, CURLINFO_RESPONSE_CODE, &status);
    return status == 206 &&
           curl_easy_header(part->web.curl, "Content-Range", 0, CURLH_HEADER, -1, &range) ==
               CURLHE_OK &&
           strncmp(range->value, "bytes ", 6) == 0 &&
           strtoull(range->value + 6, NULL, 10) == part->begin;
}

static size_t take_data(char *data, size_t size, size_t n, void *context) {
    struct part *part = context;
    n *= size;
    if ((part->have == 0 && !is_range(part)) || n > part->size - part->have) return 0;
    memcpy(part->data + part->have, data, n);
    part->have += n;
    return n;
}

// Asks for the next block.
static bool ask(struct fetch *f, struct part *part) {
    uint64_t rest = f->blocks->end - f->asked;
    part->begin = f->asked;
    part->size = rest < BLOCK_BYTES ? (size_t)rest : BLOCK_BYTES;
    part->have = part->given = 0;
    part->busy = true;
    f->asked += part->size;
    char range[64];
    snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)part->begin,
             (unsigned long long)(f->asked - 1));
    if (st_hub_web_begin(&part->web, f->blocks->url) != STINT_OK) return false;
    CURL *curl = part->web.curl;
    // HTTP/2 would put all of them on one connection.
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_data);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, part);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, part);
    return curl_easy_setopt(curl, CURLOPT_RANGE, range) == CURLE_OK &&
           curl_multi_add_handle(f->multi, curl) == CURLM_OK;
}

static void ask_for_more(struct fetch *f) {
    while (!f->cut && f->asked < f->blocks->end) {
        struct part *part = part_of(f, f->asked);
        if (part->busy || part->given < part->size) return;
        if (ask(f, part)) continue;
        part->busy = false;
        f->cut = true;
    }
}

static void note_ends(struct fetch *f) {
    CURLMsg *message;
    for (int n; (message = curl_multi_info_read(f->multi, &n)) != NULL;) {
        struct part *part;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&part);
        curl_multi_remove_handle(f->multi, message->easy_handle);
        part->busy = false;
        f->cut = f->cut || code != CURLE_OK || part->have < part->size;
    }
}

static void hand_over(struct fetch *f) {
    while (f->given < f->asked) {
        struct part *part = part_of(f, f->given);
        size_t n = part->have - part->given;
        if (n > 0 && !f->blocks->take(f->blocks->context, part->data + part->given, n)) {
            f->failed = true;
            return;
        }
        part->given = part->have;
        f->given += n;
        if (part->given < part->size) return;
    }
}

// All that was asked for is handed over, or the next bytes will not come.
static bool at_end(struct fetch *f) {
    return f->failed || f->given == f->asked || !part_of(f, f->given)->busy;
}

static void run(struct fetch *f) {
    for (ask_for_more(f); !at_end(f); ask_for_more(f)) {
        int running;
        f->failed = curl_multi_poll(f->multi, NULL, 0, POLL_MS, NULL) != CURLM_OK ||
                    curl_multi_perform(f->multi, &running) != CURLM_OK;
        note_ends(f);
        hand_over(f);
    }
}

void st_hub_blocks_fetch(const struct st_hub_blocks *blocks) {
    if (blocks->end < blocks->begin || blocks->end - blocks->begin < 2 * (uint64_t)BLOCK_BYTES)
        return;
    struct fetch f = {.blocks = blocks, .asked = blocks->begin, .given = blocks->begin};
    f.multi = curl_multi_init();
    bool ok = f.multi != NULL;
    for (size_t i = 0; i < N_PARTS; i++) {
        struct part *part = &f.parts[i];
        part->web = *blocks->web;
        part->web.curl = curl_easy_init();
        part->data = malloc(BLOCK_BYTES);
        ok = ok && part->web.curl != NULL && part->data != NULL;
    }
    if (ok) run(&f);
    for (size_t i = 0; i < N_PARTS; i++) {
        struct part *part = &f.parts[i];
        if (part->web.curl != NULL && f.multi != NULL)
            curl_multi_remove_handle(f.multi, part->web.curl);
        curl_easy_cleanup(part->web.curl);
        free(part->data);
    }
    curl_multi_cleanup(f.multi);
}
