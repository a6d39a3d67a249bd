// SPDX-License-Identifier: Apache-2.0
#include "draft/suffix.h"

#include <string.h>

enum { ROOT = 0, NONE = -1 };

void st_suffix_lay_out(struct st_suffix *s, size_t capacity, struct st_arena *arena) {
    s->capacity = capacity;
    s->n_table = 64;
    while (s->n_table < 4 * capacity) s->n_table *= 2;
    s->text = ST_TAKE(arena, int32_t, capacity);
    s->states = ST_TAKE(arena, struct st_suffix_state, 2 * capacity + 1);
    s->edges = ST_TAKE(arena, struct st_suffix_edge, 3 * capacity + 1);
    s->table = ST_TAKE(arena, int32_t, s->n_table);
}

void st_suffix_clear(struct st_suffix *s) {
    if (s->n > 0) memset(s->table, 0, s->n_table * sizeof *s->table);
    s->n = s->n_states = s->n_edges = 0;
    s->match_length = s->match_end = 0;
}

// ---- Transitions

static size_t hash(const struct st_suffix *s, int32_t from, int32_t token) {
    uint64_t key = (uint64_t)(uint32_t)from << 32 | (uint32_t)token;
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(key >> 32) & (s->n_table - 1);
}

// The place of a transition in the table, or the empty one where it would be.
static int32_t *place_of(const struct st_suffix *s, int32_t from, int32_t token) {
    size_t at = hash(s, from, token);
    for (;; at = (at + 1) & (s->n_table - 1)) {
        if (s->table[at] == 0) return &s->table[at];
        const struct st_suffix_edge *edge = &s->edges[s->table[at] - 1];
        if (edge->from == from && edge->token == token) return &s->table[at];
    }
}

static struct st_suffix_edge *find(const struct st_suffix *s, int32_t from, int32_t token) {
    int32_t place = *place_of(s, from, token);
    return place ? &s->edges[place - 1] : NULL;
}

static void connect(struct st_suffix *s, int32_t from, int32_t token, int32_t to) {
    int32_t edge = (int32_t)s->n_edges++;
    *place_of(s, from, token) = edge + 1;
    s->edges[edge] = (struct st_suffix_edge){from, token, to, s->states[from].edges};
    s->states[from].edges = edge;
}

// ---- States

static int32_t add_state(struct st_suffix *s, int32_t length, int32_t link, int32_t end) {
    s->states[s->n_states] = (struct st_suffix_state){length, link, end, NONE};
    return (int32_t)s->n_states++;
}

// The part of state `to`'s strings that end with p's and a token: a state of their own.
static int32_t split(struct st_suffix *s, int32_t p, int32_t token, int32_t to) {
    int32_t part = add_state(s, s->states[p].length + 1, s->states[to].link, s->states[to].end);
    for (int32_t e = s->states[to].edges; e != NONE; e = s->edges[e].next)
        connect(s, part, s->edges[e].token, s->edges[e].to);
    for (; p != NONE; p = s->states[p].link) {
        struct st_suffix_edge *edge = find(s, p, token);
        if (edge->to != to) break;
        edge->to = part;
    }
    s->states[to].link = part;
    return part;
}

void st_suffix_push(struct st_suffix *s, int32_t token) {
    if (s->n == 0) s->last = add_state(s, 0, NONE, 0);
    int32_t end = (int32_t)s->n + 1, p = s->last, link = ROOT;
    s->text[s->n++] = token;
    int32_t last = add_state(s, end, ROOT, end);
    struct st_suffix_edge *edge = NULL;
    for (; p != NONE && !(edge = find(s, p, token)); p = s->states[p].link)
        connect(s, p, token, last);
    if (edge) {
        link = edge->to;
        if (s->states[link].length != s->states[p].length + 1) link = split(s, p, token, link);
    }
    s->states[last].link = link;
    s->match_length = s->states[link].length;
    s->match_end = s->states[link].end;
    for (int i = 0; i < ST_SUFFIX_WALK && link != ROOT; i++, link = s->states[link].link)
        s->states[link].end = end;
    s->last = last;
}
