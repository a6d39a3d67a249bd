// SPDX-License-Identifier: Apache-2.0
// Stored linears and the arguments of their products: what is the same on every device.
#include "device/driver.h"

static bool is_well_formed(const struct st_stored_linear *l) {
    if (l->n_out == 0 || l->n_in == 0) return false;
    if (l->form == ST_STORED_NESTED)
        return l->nested && l->nested->n_out == l->n_out && l->nested->n_in == l->n_in;
    bool blocks = st_blocks_has(l->dtype);
    if (!l->rows || blocks != (l->form == ST_STORED_BLOCKS)) return false;
    return l->n_in % st_dtype_traits(l->dtype)->block_items == 0 &&
           l->row_bytes >= st_dtype_row_bytes(l->dtype, l->n_in);
}

bool st_device_takes_stored(const struct st_device *device, const struct st_stored_linear *l) {
    return device->ops->takes_stored && is_well_formed(l) && device->ops->takes_stored(device, l);
}

stint_status st_device_import_stored(struct st_device *device, const struct st_stored_linear *l,
                                     struct st_device_stored **stored) {
    struct st_device_stored *s = NULL;
    ST_TRY(st_device_check(device));
    if (!st_device_takes_stored(device, l))
        return st_fail(STINT_E_UNSUPPORTED, "device '%s': it does not compute this linear",
                       device->ops->name);
    size_t bytes = device->ops->stored_bytes(l);
    ST_TRY(st_device_count(device, bytes, "weights"));
    stint_status status = device->ops->import_stored(device, l, &s);
    if (status != STINT_OK) {
        st_device_uncount(device, bytes);
        return status;
    }
    s->device = device;
    s->linear = *l;
    s->bytes = bytes;
    *stored = s;
    return STINT_OK;
}

void st_device_free_stored(struct st_device_stored *s) {
    if (!s) return;
    st_device_uncount(s->device, s->bytes);
    s->device->ops->free_stored(s);
}

static const char *check_args(const struct st_device_stored *s, const struct st_multiply_args *a) {
    const struct st_stored_linear *l = &s->linear;
    bool nested = l->form == ST_STORED_NESTED;
    if (a->terms < 1 || a->terms > (nested ? 2 : 1)) return "an input of too many terms";
    if (nested && (a->bits < l->nested->low || a->bits > l->nested->high))
        return "a precision that its weights do not have";
    if (a->n_out > (s->device->caps.host_products ? l->n_out : 0)) return "rows that it has not";
    size_t bytes = st_stored_input_bytes(l->form, l->n_in, a->n, a->terms);
    const struct st_slice x = {a->x.buffer, a->x.offset, 0};
    if (!st_slice_fits(s->device, &x, 1, bytes, ST_DEVICE_ALIGNMENT))
        return "an input outside its buffer";
    if (!st_slice_fits(s->device, &a->y, a->n, st_multiply_rows(s, a) * sizeof(float),
                       sizeof(float)))
        return "an output outside its buffer";
    return NULL;
}

stint_status st_device_multiply(struct st_device_stored *s, const struct st_multiply_args *args,
                                struct st_job *const *after, size_t n_after, struct st_job **job) {
    const char *wrong = check_args(s, args);
    if (wrong) return st_device_broken(s->device, wrong);
    return st_job_start(s->device, ST_JOB_MULTIPLY, s, args, after, n_after, job);
}
