// SPDX-License-Identifier: Apache-2.0
#include "session/kv/copy.h"

#include "base/size.h"
#include "session/session.h"

#include <string.h>

bool st_session_copies(const struct stint_session *s) {
    return s->kv.state.n_layers == 0;
}

void st_session_copy(struct stint_session *s, uint32_t from, uint32_t to, size_t n) {
    const struct st_sequence *source = &s->sequences[from];
    struct st_sequence *held = &s->sequences[to];
    unsigned char *caches[] = {s->kv.keys, s->kv.values};
    st_session_reach(s, to, n);
    for (uint32_t i = 0; i < 2 * s->model->config.n_layers; i++)
        for (size_t h = 0; s->kv.layers[i / 2].own && h < s->kv.layers[i / 2].n_heads; h++)
            for (size_t at = 0, some; at < n; at += some) {
                some = st_kv_in_row(&s->kv, at, n);
                memcpy(st_kv_row(&s->kv, caches[i % 2], to, i / 2, h, at),
                       st_kv_row(&s->kv, caches[i % 2], from, i / 2, h, at),
                       some * s->kv.layers[i / 2].row_bytes);
            }
    st_kv_device_forget(s, to, 0);
    memcpy(held->history, source->history, n * sizeof *held->history);
    held->length = n;
    held->prompted = st_min(n, source->prompted);
}
