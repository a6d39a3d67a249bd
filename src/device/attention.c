// SPDX-License-Identifier: Apache-2.0
// The arguments of attention: what is the same on every device.
#include "device/driver.h"

bool st_device_attention_is_well_formed(const struct st_device_attention *a) {
    return a->type < ST_N_KV_TYPES && a->dim && a->n_kv && a->n_heads &&
           a->n_heads % a->n_kv == 0 && !(a->softcap < 0.0f);
}

bool st_device_attends(const struct st_device *device, const struct st_device_attention *a) {
    return device->ops->attends && st_device_attention_is_well_formed(a) &&
           device->ops->attends(device, a);
}

static const char *check_args(const struct st_device *device, const struct st_attend_args *a) {
    const struct st_device_attention *shape = &a->shape;
    size_t row = st_kv_row_bytes(shape->type, shape->dim), keys = a->position + a->n, head;
    size_t alignment = st_max(1, ST_ATTEND_ALIGNMENT * st_kv_traits[shape->type].value_bits / 8);
    size_t query = (size_t)shape->n_heads * shape->dim * sizeof(float);
    if (a->position > INT32_MAX || a->n > INT32_MAX || a->n > device->caps.max_rows)
        return "attention of too many tokens";
    if (!st_slice_fits(device, &a->q, a->n, query, sizeof(float)) ||
        !st_slice_fits(device, &a->out, a->n, query, sizeof(float)))
        return "a query outside its buffer";
    if (!st_size_mul(keys, row, &head) ||
        !st_slice_fits(device, &a->keys, shape->n_kv, head, alignment) ||
        !st_slice_fits(device, &a->values, shape->n_kv, head, alignment))
        return "keys or values outside their buffer";
    return NULL;
}

stint_status st_device_attend(struct st_device *device, const struct st_attend_args *args,
                              struct st_job *const *after, size_t n_after, struct st_job **job) {
    if (!st_device_attends(device, &args->shape))
        return st_fail(STINT_E_UNSUPPORTED, "device '%s': it does not compute this attention",
                       device->ops->name);
    const char *wrong = check_args(device, args);
    if (wrong) return st_device_broken(device, wrong);
    return st_job_start(device, ST_JOB_ATTEND, NULL, args, after, n_after, job);
}
