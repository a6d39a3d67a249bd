// SPDX-License-Identifier: Apache-2.0
#include "session/precision/schedule_json.h"

#include "base/output.h"
#include "session/precision/signal.h"

#include <stdio.h>
#include <string.h>

void st_schedule_fingerprint(const struct stint_model *model, char text[ST_FINGERPRINT_BYTES]) {
    const struct stint_model *owner = model->nested_from ? model->nested_from : model;
    const struct st_package *package = owner->checkpoint.package;
    snprintf(text, ST_FINGERPRINT_BYTES, "%016llx",
             package ? (unsigned long long)st_package_hash(package) : 0ull);
}

static stint_status check_fingerprint(const struct stint_model *model, const char *text) {
    char own[ST_FINGERPRINT_BYTES];
    st_schedule_fingerprint(model, own);
    if (strcmp(text, own) == 0) return STINT_OK;
    return st_fail(STINT_E_ARG,
                   "this schedule was made for another package (%.16s, this one is %s): make one "
                   "with 'stint schedule'",
                   text, own);
}

static stint_status read_step(const json_t *step, stint_precision *p) {
    json_int_t bits, start;
    if (!json_is_array(step) || json_array_size(step) != 2 ||
        !json_is_integer(json_array_get(step, 0)) || !json_is_integer(json_array_get(step, 1)))
        return st_fail(STINT_E_FORMAT, "\"decode\" holds pairs [precision, first step]");
    bits = json_integer_value(json_array_get(step, 0));
    start = json_integer_value(json_array_get(step, 1));
    if (p->n_steps == STINT_PRECISION_STEPS || bits < 0 || bits > UINT32_MAX || start < 0 ||
        start > UINT32_MAX)
        return st_fail(STINT_E_FORMAT, "\"decode\": at most %d steps of whole numbers",
                       STINT_PRECISION_STEPS);
    p->steps[p->n_steps].bits = (uint32_t)bits;
    p->steps[p->n_steps].start = (uint32_t)start;
    p->n_steps++;
    return STINT_OK;
}

static stint_status read_signal(const json_t *json, stint_precision *p) {
    const char *name = NULL;
    const json_t *list = json_object_get(json, "thresholds"), *value;
    size_t i;
    ST_TRY(st_json_string(json, "signal", &name));
    ST_TRY(st_signal_find(name, &p->signal));
    if (p->signal == STINT_SIGNAL_NONE) return STINT_OK;
    if (!json_is_array(list) || json_array_size(list) + 1 != p->n_steps)
        return st_fail(STINT_E_FORMAT, "\"thresholds\": expected a list of %u numbers",
                       p->n_steps ? p->n_steps - 1 : 0);
    json_array_foreach(list, i, value) {
        if (!json_is_number(value)) return st_fail(STINT_E_FORMAT, "\"thresholds\" holds numbers");
        p->thresholds[i] = (float)json_number_value(value);
    }
    return STINT_OK;
}

stint_status st_schedule_parse(const struct stint_model *model, const json_t *json,
                               stint_precision *precision) {
    stint_precision p = {.size = sizeof p};
    int64_t prefill = 0;
    const json_t *step, *decode = json_object_get(json, "decode");
    size_t i;
    ST_TRY(st_json_int(json, "prefill", 0, 255, &prefill));
    if (!json_is_array(decode)) return st_fail(STINT_E_FORMAT, "\"decode\" is missing or no array");
    p.prefill = (uint32_t)prefill;
    json_array_foreach(decode, i, step) ST_TRY(read_step(step, &p));
    ST_TRY(read_signal(json, &p));
    ST_TRY(st_precision_check(model, &p));
    *precision = p;
    return STINT_OK;
}

stint_status st_schedule_check_owner(const struct stint_model *model, const json_t *json) {
    const char *made_for = NULL;
    ST_TRY(st_json_string(json, "package", &made_for));
    return check_fingerprint(model, made_for ? made_for : "?");
}

// Adds an item, which may be NULL, and sets *ok to false where there was no memory.
static void append(json_t *list, json_t *item, bool *ok) {
    if (json_array_append_new(list, item) != 0) *ok = false;
}

json_t *st_schedule_describe(const stint_precision *p) {
    bool signal = p->signal != STINT_SIGNAL_NONE, ok = true;
    json_t *decode = json_array(), *thresholds = signal ? json_array() : NULL;
    for (uint32_t i = 0; i < p->n_steps; i++)
        append(decode,
               json_pack("[I, I]", (json_int_t)p->steps[i].bits, (json_int_t)p->steps[i].start),
               &ok);
    for (uint32_t i = 0; signal && i + 1 < p->n_steps; i++)
        append(thresholds, json_real((double)p->thresholds[i]), &ok);
    json_t *schedule =
        json_pack("{s:I, s:o, s:s*, s:o*}", "prefill", (json_int_t)p->prefill, "decode", decode,
                  "signal", signal ? stint_signal_name(p->signal) : NULL, "thresholds", thresholds);
    if (schedule && ok) return schedule;
    json_decref(schedule);
    return NULL;
}

static stint_status write_json(const json_t *file, const char *path) {
    struct st_output output;
    ST_TRY(st_output_open(path, 0666, &output));
    bool written = json_dumpf(file, output.file, JSON_COMPACT) == 0;
    stint_status status = st_output_close(&output, written);
    return written ? status : st_fail(STINT_E_IO, "%s: cannot be written", path);
}

stint_status st_schedule_write(const struct stint_model *model, const stint_precision *precision,
                               const char *path) {
    char fingerprint[ST_FINGERPRINT_BYTES];
    st_schedule_fingerprint(model, fingerprint);
    json_t *file = json_pack("{s:i, s:s}", "stint_schedule", 1, "package", fingerprint);
    json_t *schedule = st_schedule_describe(precision);
    stint_status status = STINT_OK;
    if (!file || !schedule || json_object_update(file, schedule) != 0)
        status = st_fail(STINT_E_NOMEM, "no memory for a schedule");
    else
        status = write_json(file, path);
    json_decref(schedule);
    json_decref(file);
    return status;
}
