// SPDX-License-Identifier: Apache-2.0
#include "session/linear/stored.h"

#include "base/log.h"
#include "base/size.h"
#include "session/linear/op.h"
#include "session/weights/bounded.h"

#include <stdlib.h>
#include <string.h>

// ---- Slots

// Of a layer: its linears of one kind, then the feed-forward blocks'; the head comes behind all.
struct st_stored_slot *st_stored_slots(const struct stint_session *s,
                                       const struct st_linear_id *id) {
    size_t of_layer = ST_INT8_UP + 2 * st_config_max_blocks(&s->model->config);
    size_t unit =
        id->layer * of_layer + (size_t)id->role + (st_int8_is_ffn(id->role) ? 2 * id->expert : 0);
    size_t at =
        id->role == ST_INT8_HEAD ? s->stored.n_slots - ST_MAX_LINEARS : unit * ST_MAX_LINEARS;
    return s->stored.slots + at;
}

static uint32_t n_layers(const struct stint_session *s) {
    return s->model->config.n_layers + s->ahead.on;
}

typedef stint_status unit_fn(struct stint_session *s, const struct st_linear_id *id);

static stint_status each_unit(struct stint_session *s, unit_fn *fn) {
    for (uint32_t i = 0; i < n_layers(s); i++) {
        ST_TRY(fn(s, &(struct st_linear_id){ST_INT8_QKV, i, 0}));
        ST_TRY(fn(s, &(struct st_linear_id){ST_INT8_O, i, 0}));
        for (uint32_t e = 0; e < st_config_blocks(&s->model->config, i); e++) {
            ST_TRY(fn(s, &(struct st_linear_id){ST_INT8_UP, i, e}));
            ST_TRY(fn(s, &(struct st_linear_id){ST_INT8_DOWN, i, e}));
        }
    }
    return fn(s, &(struct st_linear_id){ST_INT8_HEAD, 0, 0});
}

// The form in which the session computes with it; false: as INT8, or it is read on demand.
static bool form_of(const struct stint_session *s, const struct st_linear_weight *w,
                    struct st_stored_linear *l) {
    *l = (struct st_stored_linear){.n_out = w->n_out, .n_in = w->n_in, .nested = w->nested};
    if (w->nested) {
        l->form = ST_STORED_NESTED;
        if (s->bounded) l->nested = &s->bounded->pinned.weights[w->nested->index];
        return !s->bounded || l->nested->codes;
    }
    if (!w->data || w->piece || s->model->int8.layers) return false;
    l->form = st_blocks_has(w->dtype) ? ST_STORED_BLOCKS : ST_STORED_FLOATS;
    l->dtype = w->dtype;
    l->rows = w->data;
    l->row_bytes = w->row_bytes;
    return l->form == ST_STORED_FLOATS || s->model->fast;
}

// ---- Opening

// What finds no room stays on the host.
static stint_status import_unit(struct stint_session *s, const struct st_linear_id *id) {
    const struct st_linear_weight *weights[ST_MAX_LINEARS];
    size_t n = st_linear_parts(&s->model->weights, *id, weights);
    struct st_stored_slot *slots = st_stored_slots(s, id);
    for (size_t i = 0; i < n; i++) {
        struct st_stored_linear l;
        slots[i].weight = weights[i];
        if (!form_of(s, weights[i], &l) || !st_device_takes_stored(s->stored.device, &l)) continue;
        slots[i].form = l.form;
        stint_status status = st_device_import_stored(s->stored.device, &l, &slots[i].stored);
        if (status != STINT_OK && status != STINT_E_LIMIT) return status;
    }
    return STINT_OK;
}

struct sizes {
    size_t in, out; // bytes of the longest
};

static void measure(const struct stint_session *s, struct sizes *sizes) {
    for (size_t i = 0; i < s->stored.n_slots; i += ST_MAX_LINEARS) {
        size_t out = 0;
        for (size_t k = i; k < i + ST_MAX_LINEARS && s->stored.slots[k].weight; k++) {
            const struct st_linear_weight *w = s->stored.slots[k].weight;
            out += w->n_out * sizeof(float);
            for (int form = 0; form < ST_N_STORED_FORMS; form++)
                sizes->in =
                    st_max(sizes->in, st_stored_input_bytes((enum st_stored_form)form, w->n_in,
                                                            ST_STORED_ROWS, ST_TWO_TERMS));
        }
        sizes->out = st_max(sizes->out, ST_STORED_ROWS * out);
    }
}

static stint_status open_buffers(struct stint_session *s) {
    struct sizes sizes = {0, 0};
    measure(s, &sizes);
    ST_TRY(st_buffer_allocate(s->stored.device, sizes.in, &s->stored.in));
    return st_buffer_allocate(s->stored.device, sizes.out, &s->stored.out);
}

static stint_status fill(struct stint_session *s) {
    size_t units = n_layers(s) * (ST_INT8_UP + 2 * st_config_max_blocks(&s->model->config)) + 1;
    s->stored.n_slots = units * ST_MAX_LINEARS;
    s->stored.slots = calloc(s->stored.n_slots, sizeof *s->stored.slots);
    if (!s->stored.slots) return st_fail(STINT_E_NOMEM, "no memory for a session");
    ST_TRY(each_unit(s, import_unit));
    return open_buffers(s);
}

// The first of the two that can; *name is NULL where none does.
static stint_status find_name(const struct st_npu_options *o, const char **name, bool *second) {
    bool has = false;
    *name = NULL;
    if (o->device) ST_TRY(st_device_has_stored(o->device, &has));
    if (has) *name = o->device;
    if (has || !o->second) return STINT_OK;
    ST_TRY(st_device_has_stored(o->second, &has));
    *second = has;
    if (has) *name = o->second;
    return STINT_OK;
}

// A model without INT8 subgraphs has opened none.
static stint_status open_own(struct stint_session *s, const struct st_npu_options *o,
                             const char *name) {
    const struct st_device_options options = {.name = name, .memory_limit = o->memory};
    stint_status status = st_device_open(&options, &s->stored.device);
    if (status == STINT_E_DEVICE) {
        st_log(STINT_LOG_WARNING, "%s: the CPU computes everything", stint_error_text());
        return STINT_OK;
    }
    s->stored.own = status == STINT_OK;
    return status;
}

static bool has_any(const struct stint_session *s) {
    return s->model->nested.high || !s->model->int8.layers;
}

static stint_status leave(struct stint_session *s) {
    if (s->stored.own) st_device_close(s->stored.device);
    s->stored = (struct st_stored){0};
    return STINT_OK;
}

stint_status st_stored_open(struct stint_session *s, const struct st_npu_options *o,
                            float npu_hot) {
    const char *name;
    bool second = false;
    // Under a bound only with weights that are all pinned.
    if (!has_any(s) || (s->bounded && s->bounded->pins.limit != ST_PINS_ALL)) return STINT_OK;
    ST_TRY(find_name(o, &name, &second));
    if (!name) return STINT_OK;
    if (s->model->nested_from) { // a linear is stored on a device in one form
        st_log(STINT_LOG_WARNING, "%s: the CPU computes a model with --nested", name);
        return STINT_OK;
    }
    const struct st_npu *npu = s->group.npu[second ? ST_NPU_SECOND : ST_NPU_DEVICE];
    s->stored.second = second;
    if (npu)
        s->stored.device = npu->device;
    else
        ST_TRY(open_own(s, o, name));
    if (!s->stored.device) return STINT_OK;
    s->stored.shares = st_device_caps(s->stored.device)->host_products;
    s->stored.whole = npu_hot >= 2.0f;
    // What a device computes instead of the host may be other bits than the host's.
    if (s->stored.shares ? npu_hot < 0.0f : s->bounded != NULL) return leave(s);
    pthread_mutex_init(&s->stored.lock, NULL);
    stint_status status = fill(s);
    if (status != STINT_E_LIMIT && (status != STINT_E_DEVICE || npu)) return status;
    // Not even the buffers fit, or it failed: it is not used.
    st_log(STINT_LOG_WARNING, "%s: the CPU computes everything", stint_error_text());
    st_stored_close(s);
    return STINT_OK;
}

void st_stored_close(struct stint_session *s) {
    struct st_stored *all = &s->stored;
    if (!all->device) return;
    for (size_t i = 0; all->slots && i < all->n_slots; i++)
        st_device_free_stored(all->slots[i].stored);
    free(all->slots);
    st_buffer_free(all->in);
    st_buffer_free(all->out);
    pthread_mutex_destroy(&all->lock);
    if (all->own) st_device_close(all->device);
    *all = (struct st_stored){0};
}
