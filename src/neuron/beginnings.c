// SPDX-License-Identifier: Apache-2.0
#include "neuron/beginnings.h"

#include "base/size.h"
#include "neuron/section.h"

#include <xxhash.h>

struct beginning {
    struct st_slice_seen *seen; // of the slice at hand
    size_t step;                // to that of the next one
    size_t slice_bytes, left;   // of the beginning
    size_t done;                // of the slice
    XXH3_state_t *state;
};

static void add(void *context, const unsigned char *data, size_t bytes) {
    struct beginning *b = context;
    while (bytes && b->left) {
        size_t whole = st_min(b->slice_bytes, b->done + b->left);
        size_t n = st_min(bytes, whole - b->done);
        if (b->done == 0) XXH3_64bits_reset(b->state);
        XXH3_64bits_update(b->state, data, n);
        data += n;
        bytes -= n;
        b->left -= n;
        b->done += n;
        if (b->done < whole) return;
        *b->seen = (struct st_slice_seen){.hash = XXH3_64bits_digest(b->state), .known = true};
        b->seen += b->step;
        b->done = 0;
    }
}

static stint_status check_strip(const struct stint_model *model, struct st_loader *loader,
                                const struct st_sliced *g, uint32_t strip, struct beginning *b) {
    const struct st_file_strip *s = &g->piece->strips[strip];
    const struct st_section_part part = {s->part_bytes, s->hash};
    bool same;
    b->slice_bytes = g->slice_groups * s->group_bytes;
    b->left = s->bytes;
    b->done = 0;
    ST_TRY(st_section_pass(loader, s->offset, &part, add, b, &same));
    return same ? STINT_OK : st_section_damaged(model->checkpoint.path, s->section);
}

stint_status st_beginnings_check(const struct stint_model *model, struct st_loader *loader,
                                 const struct st_sliced *g, struct st_slice_seen *seen) {
    XXH3_state_t *state = XXH3_createState();
    stint_status status = STINT_OK;
    if (!state) return st_fail(STINT_E_NOMEM, "no memory to check the weights");
    for (uint32_t i = 0; i < g->piece->n_strips && status == STINT_OK; i++) {
        struct beginning b = {.seen = seen + i, .step = g->piece->n_strips, .state = state};
        if (g->piece->strips[i].part_bytes) status = check_strip(model, loader, g, i, &b);
    }
    XXH3_freeState(state);
    return status;
}
