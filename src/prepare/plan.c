// SPDX-License-Identifier: Apache-2.0
#include "prepare/plan.h"

#include "base/size.h"
#include "base/sort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "no memory for the plan of the linears");
}

static stint_status grow(struct st_plan *p) {
    if (p->n < p->capacity) return STINT_OK;
    size_t capacity = p->capacity ? 2 * p->capacity : 256;
    struct st_planned *grown = realloc(p->linears, capacity * sizeof *grown);
    if (!grown) return no_memory();
    p->linears = grown;
    p->capacity = capacity;
    return STINT_OK;
}

stint_status st_plan_add(struct st_plan *plan, const char *name, enum st_int8_role role,
                         uint32_t layer, uint32_t expert, const struct st_input_stats *stats) {
    ST_TRY(grow(plan));
    struct st_planned l = {.role = role,
                           .layer = layer,
                           .expert = expert,
                           .scales = {stats->scales[stats->shadow], st_outlier_clip_scale(stats)},
                           .importance = stats->scales[0] / stats->scales[stats->shadow],
                           .n_in = stats->n};
    if (stats->row_tokens) l.row_error = (float)(stats->row_errors / (double)stats->row_tokens);
    uint32_t *order = malloc(stats->n * sizeof *order);
    l.hot = malloc(stats->n * sizeof *l.hot);
    if (!order || !l.hot) {
        free(order);
        free(l.hot);
        return no_memory();
    }
    snprintf(l.name, sizeof l.name, "%s", name);
    l.n_hot = st_outlier_hot(stats, order, l.hot);
    st_outlier_cover(stats, order, l.cover);
    for (size_t c = 0; c < stats->n; c++) {
        uint64_t hits = st_outlier_hits(stats, c);
        l.n_outliers += hits > 0;
        if (stats->n_tokens == 0) continue;
        l.per_token += (double)hits / (double)stats->n_tokens;
        if (l.hot[c] < 0) l.cold_per_token += (double)hits / (double)stats->n_tokens;
    }
    free(order);
    plan->linears[plan->n++] = l;
    return STINT_OK;
}

void st_plan_close(struct st_plan *plan) {
    for (size_t i = 0; i < plan->n; i++) free(plan->linears[i].hot);
    free(plan->linears);
    free(plan->by_importance);
    *plan = (struct st_plan){0};
}

// What o adds to the hidden state is a small part of it: with row scales it comes first.
static int by_importance(const void *a, const void *b, void *context) {
    const struct st_plan *p = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct st_planned *l = &p->linears[i], *m = &p->linears[j];
    if (p->row_scales && (l->role == ST_INT8_O) != (m->role == ST_INT8_O))
        return l->role == ST_INT8_O ? -1 : 1;
    float x = p->row_scales ? l->row_error : l->importance;
    float y = p->row_scales ? m->row_error : m->importance;
    if (x < y || x > y) return x < y ? -1 : 1;
    return i < j ? -1 : i > j;
}

stint_status st_plan_rank(struct st_plan *plan) {
    free(plan->by_importance);
    plan->by_importance = malloc((plan->n + 1) * sizeof *plan->by_importance);
    if (!plan->by_importance) return no_memory();
    for (size_t i = 0; i < plan->n; i++) plan->by_importance[i] = (uint32_t)i;
    st_sort(plan->by_importance, plan->n, sizeof *plan->by_importance, by_importance, plan);
    return STINT_OK;
}

double st_plan_share_of_o(const struct st_plan *plan) {
    size_t n = 0;
    for (size_t i = 0; i < plan->n; i++) n += plan->linears[i].role == ST_INT8_O;
    return (double)n / (double)plan->n;
}

void st_plan_prune(struct st_plan *plan, double pruned) {
    size_t n_pruned = (size_t)(pruned * (double)plan->n + 0.5);
    for (size_t i = 0; i < plan->n; i++) {
        struct st_planned *l = &plan->linears[plan->by_importance[i]];
        bool row_scales = plan->row_scales || l->own_scales;
        l->shadowed = !row_scales && i >= n_pruned && l->n_outliers > 0;
        l->input[0] = row_scales ? (i >= n_pruned ? 2.0f : 1.0f) : l->scales[0];
        l->input[1] = row_scales ? 0.0f : l->scales[1];
    }
}

const struct st_planned *st_plan_find(const struct st_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->n; i++)
        if (strcmp(plan->linears[i].name, name) == 0) return &plan->linears[i];
    return NULL;
}
