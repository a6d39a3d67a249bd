// SPDX-License-Identifier: Apache-2.0
#include "sched/soc.h"

#include "base/map.h"
#include "sched/soc_texts.h"

#include <ini.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct key {
    const char *section, *name;
    enum { TEXT, NUMBER, RATES } kind;
    size_t offset;
    double unit; // of a number in the file
};

#define PROCESSOR(section, member)                                                                 \
    {section, "int8_gops", RATES, offsetof(struct st_soc, member.int8), 1e9},                      \
        {section, "fp16_gflops", RATES, offsetof(struct st_soc, member.fp16), 1e9},                \
        {section, "attention_gflops", NUMBER, offsetof(struct st_soc, member.attention), 1e9},     \
        {section, "elementwise_meps", NUMBER, offsetof(struct st_soc, member.elementwise), 1e6},   \
        {section, "dispatch_us", NUMBER, offsetof(struct st_soc, member.dispatch), 1e-6}, {        \
        section, "power_w", NUMBER, offsetof(struct st_soc, member.watts), 1.0                     \
    }

static const struct key keys[] = {
    {"soc", "name", TEXT, offsetof(struct st_soc, name), 0.0},
    {"soc", "memory_gbps", NUMBER, offsetof(struct st_soc, bytes_per_second), 1e9},
    PROCESSOR("npu", npu),
    {"npu", "group_slowdown", NUMBER, offsetof(struct st_soc, group_slowdown), 1.0},
    {"npu", "build_s_per_gparam", NUMBER, offsetof(struct st_soc, build), 1e-9},
    {"npu", "optimize_s_per_gparam", NUMBER, offsetof(struct st_soc, optimize), 1e-9},
    {"npu", "memory_mib", NUMBER, offsetof(struct st_soc, npu_memory), 1024.0 * 1024.0},
    PROCESSOR("cpu", cpu),
    PROCESSOR("gpu", gpu),
};

// Reads a number of 0 or more; false for anything else.
static bool parse_number(const char *text, char **end, double *value) {
    *value = strtod(text, end);
    return *end != text && isfinite(*value) && *value >= 0.0 && *value < 1e15;
}

// "RATE", or "ROWS:RATE ROWS:RATE ..." with ascending rows.
static bool parse_rates(const char *text, double unit, struct st_soc_rates *rates) {
    struct st_soc_rates r = {0};
    while (*text) {
        char *end;
        double first, rate;
        if (r.n == ST_SOC_CLASSES || !parse_number(text, &end, &first)) return false;
        rate = first;
        r.rows[r.n] = UINT32_MAX;
        if (*end == ':') {
            if (!parse_number(end + 1, &end, &rate) || first < 1.0 || first > 1e6) return false;
            r.rows[r.n] = (uint32_t)first;
        }
        if (rate <= 0.0 || (r.n > 0 && r.rows[r.n] <= r.rows[r.n - 1])) return false;
        r.rate[r.n++] = rate * unit;
        text = end + strspn(end, " \t");
        if (*text && text == end) return false;
    }
    *rates = r;
    return r.n > 0;
}

static bool parse_name(const char *text, char *name) {
    size_t n = strlen(text);
    if (n == 0 || n >= ST_SOC_NAME) return false;
    for (size_t i = 0; i < n; i++)
        if (strchr("<>&\"'\\", text[i]) || (unsigned char)text[i] < ' ') return false;
    memcpy(name, text, n + 1);
    return true;
}

struct reader {
    struct st_soc soc;
    char problem[160];
};

static void mark_present(struct st_soc *soc, const char *section) {
    if (strcmp(section, "npu") == 0) soc->npu.present = true;
    if (strcmp(section, "cpu") == 0) soc->cpu.present = true;
    if (strcmp(section, "gpu") == 0) soc->gpu.present = true;
}

// For inih, which takes 0 as an error and reports the line.
static int take(void *context, const char *section, const char *name, const char *value) {
    struct reader *r = context;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct key *key = &keys[i];
        if (strcmp(section, key->section) != 0 || strcmp(name, key->name) != 0) continue;
        void *to = (char *)&r->soc + key->offset;
        char *end = NULL;
        double number = 0.0;
        bool ok = key->kind == TEXT    ? parse_name(value, to)
                  : key->kind == RATES ? parse_rates(value, key->unit, to)
                                       : parse_number(value, &end, &number) && *end == '\0';
        if (ok && key->kind == NUMBER) *(double *)to = number * key->unit;
        mark_present(&r->soc, section);
        if (!ok)
            snprintf(r->problem, sizeof r->problem, "[%s] %s: '%.40s' is not what belongs here",
                     section, name, value);
        return ok;
    }
    snprintf(r->problem, sizeof r->problem, "[%.20s] has no key '%.40s'", section, name);
    return 0;
}

static stint_status check(const struct st_soc *s, const char *name) {
    const struct st_soc_processor *floats = s->gpu.present ? &s->gpu : &s->cpu;
    if (!s->npu.present || s->npu.int8.n == 0)
        return st_fail(STINT_E_FORMAT, "%s: [npu] int8_gops is missing", name);
    if (!floats->present || !(floats->attention > 0.0) || !(floats->elementwise > 0.0))
        return st_fail(STINT_E_FORMAT,
                       "%s: [cpu] (or [gpu]) attention_gflops and elementwise_meps are missing",
                       name);
    return STINT_OK;
}

stint_status st_soc_read(const char *text, const char *name, struct st_soc *soc) {
    struct reader r = {.soc = {.group_slowdown = 1.0}};
    snprintf(r.soc.name, sizeof r.soc.name, "a system on a chip");
    int line = ini_parse_string(text, take, &r);
    if (line > 0)
        return st_fail(STINT_E_FORMAT, "%s: line %d: %s", name, line,
                       *r.problem ? r.problem : "is neither a [section] nor a key = value");
    if (line < 0) return st_fail(STINT_E_NOMEM, "%s: no memory to read it", name);
    if (r.soc.group_slowdown < 1.0) r.soc.group_slowdown = 1.0;
    ST_TRY(check(&r.soc, name));
    *soc = r.soc;
    return STINT_OK;
}

const char *st_soc_builtin(size_t i) {
    return st_soc_texts[i].name;
}

static stint_status open_file(const char *path, struct st_soc *soc) {
    struct st_map map;
    ST_TRY(st_map_open(path, &map));
    char *text = map.bytes < 1 << 20 ? strndup((const char *)map.data, map.bytes) : NULL;
    stint_status status = text ? st_soc_read(text, path, soc)
                               : st_fail(STINT_E_FORMAT,
                                         "%s: is too large for a description of a "
                                         "system on a chip",
                                         path);
    free(text);
    st_map_close(&map);
    return status;
}

stint_status st_soc_open(const char *name, struct st_soc *soc) {
    char known[256] = "";
    size_t used = 0;
    if (strchr(name, '/') || strchr(name, '.')) return open_file(name, soc);
    for (size_t i = 0; st_soc_texts[i].name; i++) {
        if (strcmp(name, st_soc_texts[i].name) == 0)
            return st_soc_read(st_soc_texts[i].text, name, soc);
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 st_soc_texts[i].name);
    }
    return st_fail(STINT_E_ARG,
                   "soc '%.64s' is not known; known are: %s, and files like share/soc/*.ini", name,
                   known);
}

double st_soc_rate(const struct st_soc_rates *rates, uint32_t rows) {
    for (uint32_t i = 0; i < rates->n; i++)
        if (rows <= rates->rows[i]) return rates->rate[i];
    return rates->n ? rates->rate[rates->n - 1] : 0.0;
}
