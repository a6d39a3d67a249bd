// SPDX-License-Identifier: Apache-2.0
#include "session/precision/schedule.h"

#include "base/map.h"
#include "base/size.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void st_schedule_fingerprint(const struct stint_model *model, char text[ST_FINGERPRINT_BYTES]) {
    const struct st_package *package = model->checkpoint.package;
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
    ST_TRY(st_precision_check(model, &p));
    *precision = p;
    return STINT_OK;
}

stint_status st_schedule_check_owner(const struct stint_model *model, const json_t *json) {
    const char *made_for = NULL;
    ST_TRY(st_json_string(json, "package", &made_for));
    return check_fingerprint(model, made_for ? made_for : "?");
}

static stint_status read_precision(const struct stint_model *model, const json_t *file,
                                   stint_precision *out) {
    int64_t version = 0;
    ST_TRY(st_json_int(file, "stint_schedule", 0, INT32_MAX, &version));
    if (version != 1)
        return st_fail(STINT_E_FORMAT,
                       "is not a precision schedule: expected \"stint_schedule\": 1");
    ST_TRY(st_schedule_check_owner(model, file));
    return st_schedule_parse(model, file, out);
}

static stint_status read_json(const struct stint_model *model, const char *path,
                              const struct st_map *map, stint_precision *out) {
    json_t *file = NULL;
    ST_TRY(st_json_parse(path, map->data, map->bytes, &file));
    stint_status status = read_precision(model, file, out);
    json_decref(file);
    return status == STINT_OK ? status : st_fail_prefix("%s: ", path);
}

static stint_status read_file(const struct stint_model *model, const char *path,
                              struct st_precision_schedule *s) {
    struct st_map map = {0};
    ST_TRY(st_map_open(path, &map));
    stint_status status = st_package_is(&map) ? st_learned_open(model, path, &map, &s->learned)
                                              : read_json(model, path, &map, &s->precision);
    st_map_close(&map);
    if (status == STINT_OK && s->learned) s->precision = *st_learned_choice(s->learned, 0);
    return status;
}

stint_status st_schedule_load(const struct stint_model *model, const char *spec,
                              struct st_precision_schedule *schedule) {
    struct st_precision_schedule s = {
        .precision = st_precision_uniform(ST_PRECISION_INT8, ST_PRECISION_INT8)};
    unsigned bits;
    int end = 0;
    if (!spec || strcmp(spec, "none") == 0) {
        *schedule = s;
        return STINT_OK;
    }
    if (sscanf(spec, "uniform:%2u%n", &bits, &end) == 1 && spec[end] == '\0') {
        s.precision = st_precision_uniform(bits, bits);
        ST_TRY(st_precision_check(model, &s.precision));
    } else if (strncmp(spec, "uniform:", 8) == 0) {
        return st_fail(STINT_E_ARG, "schedule '%.64s': expected uniform:B with B bits", spec);
    } else {
        ST_TRY(read_file(model, spec, &s));
    }
    *schedule = s;
    return STINT_OK;
}

void st_schedule_close(struct st_precision_schedule *schedule) {
    st_learned_close(schedule->learned);
    schedule->learned = NULL;
}

static void need(const struct stint_model *model, uint32_t bits, bool step,
                 struct st_needs *needs) {
    if (st_nested_has(&model->nested, bits))
        needs->bits = (unsigned)st_max(needs->bits, bits);
    else
        needs->int8_steps |= step;
}

static void need_all(const struct stint_model *model, const stint_precision *p,
                     struct st_needs *needs) {
    need(model, p->prefill, false, needs);
    for (uint32_t i = 0; i < p->n_steps; i++) need(model, p->steps[i].bits, true, needs);
}

struct st_needs st_schedule_needs(const struct stint_model *model, const stint_precision *precision,
                                  const struct st_learned *learned) {
    struct st_needs needs = {0, false};
    need_all(model, precision, &needs);
    for (size_t i = 0; learned && i < st_learned_choices(learned); i++)
        need_all(model, st_learned_choice(learned, i), &needs);
    return needs;
}

json_t *st_schedule_describe(const stint_precision *p) {
    json_t *decode = json_array();
    for (uint32_t i = 0; i < p->n_steps; i++)
        json_array_append_new(decode, json_pack("[I, I]", (json_int_t)p->steps[i].bits,
                                                (json_int_t)p->steps[i].start));
    return json_pack("{s:I, s:o}", "prefill", (json_int_t)p->prefill, "decode", decode);
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
    else if (json_dump_file(file, path, JSON_COMPACT) != 0)
        status = st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
    json_decref(schedule);
    json_decref(file);
    return status;
}
