// SPDX-License-Identifier: Apache-2.0
// Bindings ask for the same sections in the same order each time, so they are a list with a cursor:
// the first binding counts, the second makes them, later ones find them.
#include "model/preset_int8.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SECTIONS = 1 << 16 };

struct st_preset_int8 {
    struct st_arena arena;
    const void **data; // [n]
    size_t n, next;
    enum { COUNTING, MAKING, FINDING } phase;
    int32_t nested[2]; // precisions; 0: none
    stint_progress_fn *progress;
    void *progress_context;
};

static void fill_panels(int8_t *panels, size_t bytes, size_t seed) {
    uint64_t state = seed + 1;
    for (size_t i = 0; i < bytes; i += 8) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t random = state ^ state >> 29;
        memcpy(panels + i, &random, 8);
    }
    // -128 is no weight.
    for (size_t i = 0; i < bytes; i++) panels[i] = panels[i] == -128 ? -127 : panels[i];
}

// What a section of random weights says: activations up to 8, outputs about as large.
static void fill(struct st_preset_int8 *preset, const struct st_section *s, void *data) {
    float *f = data;
    if (s->type == ST_SECTION_INT8_N16K4 || s->type == ST_SECTION_NESTED ||
        s->type == ST_SECTION_I8)
        fill_panels(data, s->bytes, preset->next);
    else if (s->type == ST_SECTION_F32 && s->dims[0] == 2)
        f[0] = f[1] = 8.0f / 127.0f;
    else if (s->type == ST_SECTION_F32)
        for (uint64_t i = 0; i < s->bytes / sizeof *f; i++) f[i] = 2e-4f;
}

stint_status st_preset_int8_find(void *context, const char *name, bool required,
                                 struct st_section *section) {
    struct st_preset_int8 *preset = context;
    if (preset->nested[1] && strcmp(name, ST_NESTED_PRECISIONS) == 0)
        section->data = preset->nested;
    if (!required) return STINT_OK; // no biases
    if (preset->next == MAX_SECTIONS) return st_fail(STINT_E_UNSUPPORTED, "too many linears");
    if (preset->phase != FINDING) {
        ST_TRY(st_section_bytes(section, &section->bytes));
        void *data = st_arena_take(&preset->arena, section->bytes, 1);
        if (data) fill(preset, section, data);
        if (preset->data) preset->data[preset->next] = data;
        if (preset->progress && preset->phase == MAKING)
            preset->progress(preset->progress_context, "random weights", preset->next, preset->n);
    }
    if (preset->phase != COUNTING) section->data = preset->data[preset->next];
    preset->next++;
    return STINT_OK;
}

void st_preset_int8_rewind(struct st_preset_int8 *preset) {
    preset->next = 0;
}

uint64_t st_preset_int8_bytes(const struct st_preset_int8 *preset) {
    return preset->arena.used;
}

// Asks for every section.
static stint_status bind_all(const struct st_int8_source *source, const struct st_config *config) {
    struct st_arena measure = st_arena_measure();
    struct st_weights_int8 int8;
    struct st_weights weights = {0};
    struct st_nested_range nested;
    ST_TRY(st_weights_int8_bind(source, config, &measure, &int8));
    return st_weights_nested_bind(source, config, true, &measure, &weights, &nested);
}

static stint_status make(struct st_preset_int8 *preset, const struct st_config *config) {
    struct st_int8_source source = {.find = st_preset_int8_find, .context = preset};
    ST_TRY(bind_all(&source, config));
    ST_TRY(st_arena_check(&preset->arena, "random weights"));
    preset->n = preset->next;
    preset->data = calloc(preset->n, sizeof *preset->data);
    if (!preset->data) return st_fail(STINT_E_NOMEM, "no memory for random weights");
    ST_TRY(st_arena_open(&preset->arena, preset->arena.used));
    preset->phase = MAKING;
    st_preset_int8_rewind(preset);
    ST_TRY(bind_all(&source, config));
    preset->phase = FINDING;
    return st_arena_check(&preset->arena, "random weights");
}

stint_status st_preset_int8_open(const struct st_config *config, struct st_nested_range nested,
                                 stint_progress_fn *progress, void *progress_context,
                                 struct st_preset_int8 **preset) {
    struct st_preset_int8 *s = calloc(1, sizeof *s);
    if (!s) return st_fail(STINT_E_NOMEM, "no memory for random weights");
    s->arena = st_arena_measure();
    s->nested[0] = nested.low;
    s->nested[1] = nested.high;
    s->progress = progress;
    s->progress_context = progress_context;
    stint_status status = make(s, config);
    if (progress) progress(progress_context, "random weights", s->n, s->n);
    if (status != STINT_OK) {
        st_preset_int8_close(s);
        return status;
    }
    *preset = s;
    return STINT_OK;
}

void st_preset_int8_close(struct st_preset_int8 *preset) {
    if (!preset) return;
    st_arena_close(&preset->arena);
    free(preset->data);
    free(preset);
}
