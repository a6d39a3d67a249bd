// SPDX-License-Identifier: Apache-2.0
#include "session/precision/schedule.h"

#include "base/map.h"
#include "base/size.h"
#include "session/precision/quality.h"
#include "session/session.h"
#include "session/weights/bounded.h"

#include <stdio.h>
#include <string.h>

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
    unsigned bits = spec ? st_precision_quality(model, spec) : 0;
    int end = 0;
    if (!spec || bits || strcmp(spec, "none") == 0) {
        if (bits) s.precision.steps[0].bits = bits;
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

struct st_needs st_schedule_needs(const struct stint_model *model, const stint_precision *precision,
                                  const struct st_learned *learned) {
    struct st_needs needs = {0};
    st_precision_needs(model, precision, &needs);
    for (size_t i = 0; learned && i < st_learned_choices(learned); i++)
        st_precision_needs(model, st_learned_choice(learned, i), &needs);
    return needs;
}

// ---- Of a session

// Under a memory bound a session keeps what the schedule runs that it was opened with.
static stint_status check_kept(const stint_session *s, const stint_precision *p) {
    unsigned taken = st_schedule_needs(s->model, p, NULL).precisions;
    if (!s->bounded) return STINT_OK;
    taken &= ~(s->bounded->pins.precisions & ~s->bounded->pins.drafts);
    if (!taken) return STINT_OK;
    return st_fail(STINT_E_UNSUPPORTED,
                   "precision %u: this session was planned without it under its memory bound; "
                   "open it with the schedule that it is to run",
                   st_pins_highest(taken));
}

stint_status stint_session_set_precision(stint_session *session, const stint_precision *precision) {
    stint_precision p = st_precision_uniform(ST_PRECISION_INT8, ST_PRECISION_INT8);
    if (!session) return st_fail(STINT_E_ARG, "session may not be NULL");
    if (precision) {
        memcpy(&p, precision, st_min(precision->size, sizeof p));
        ST_TRY(st_precision_check(session->model, &p));
        ST_TRY(check_kept(session, &p));
    }
    st_learned_close(session->learned);
    session->learned = NULL;
    session->precision = p;
    session->newest_bits = st_session_bits_of(session->model, p.prefill);
    return STINT_OK;
}

uint32_t stint_session_bits(const stint_session *session) {
    return session->newest_bits;
}

bool stint_session_precision(const stint_session *session, stint_precision *precision) {
    size_t size = precision->size;
    memcpy(precision, &session->precision, st_min(size, sizeof *precision));
    precision->size = size;
    return session->learned != NULL;
}
