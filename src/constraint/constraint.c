// SPDX-License-Identifier: Apache-2.0
#include "constraint/run.h"

#include <stdlib.h>
#include <string.h>

stint_status st_constraint_json(struct st_constraint **constraint) {
    struct st_code code;
    st_code_open(&code);
    uint32_t start = st_code_space(&code, st_code_object(&code, code.end));
    return st_code_close(&code, start, constraint);
}

// True if this step has not visited it yet. Beyond the bound nothing counts as new: some paths are
// lost, but each of the others still leads to an end.
static bool visit(struct st_constraint_state *s, struct st_thread t) {
    uint32_t slot = (t.place * 0x9e3779b1u ^ t.frame * 0x85ebca6bu ^ t.count * 0xc2b2ae35u);
    for (slot = (slot ^ slot >> 15) % ST_VISIT_SLOTS; s->visits[slot].step == s->step;
         slot = (slot + 1) % ST_VISIT_SLOTS) {
        const struct st_thread *v = &s->visits[slot].thread;
        if (v->place == t.place && v->frame == t.frame && v->count == t.count) return false;
    }
    if (s->n_visits == ST_VISITS_MAX) return false;
    s->n_visits++;
    s->visits[slot] = (struct st_visit){t, s->step};
    return true;
}

// The frame of a call, an existing one if possible; 0 if there is no room. A frame comes after its
// parent, so the search starts there.
static uint32_t call(struct st_constraint_state *s, struct st_thread t, const struct st_instr *in) {
    uint32_t depth = s->frames[t.frame].depth + in->nests;
    for (size_t i = s->n_frames; i-- > t.frame + 1u;) {
        const struct st_frame *f = &s->frames[i];
        if (f->parent == t.frame && f->back == in->b && f->count == t.count && f->depth == depth)
            return (uint32_t)i;
    }
    if (s->n_frames == ST_FRAMES_MAX) return 0;
    s->frames[s->n_frames] = (struct st_frame){t.frame, in->b, t.count, depth};
    return (uint32_t)s->n_frames++;
}

// Follows `t` to all threads that wait for a byte or end, and adds them to threads[*end...).
static void follow(struct st_constraint_state *s, struct st_thread t, size_t *end) {
    size_t n_work = 0;
    s->work[n_work++] = t;
    while (n_work) {
        t = s->work[--n_work];
        const struct st_instr *in = &s->constraint->code[t.place];
        if (s->frames[t.frame].depth + in->need > ST_NEST_MAX) continue;
        switch ((enum st_op)in->op) {
        case ST_OP_BYTE:
        case ST_OP_STRING:
        case ST_OP_END:
            if (*end < ST_THREADS_MAX && visit(s, t)) s->threads[(*end)++] = t;
            break;
        case ST_OP_SPLIT:
            if (!visit(s, t)) break;
            s->work[n_work++] = (struct st_thread){in->b, t.count, t.frame};
            s->work[n_work++] = (struct st_thread){in->a, t.count, t.frame};
            break;
        case ST_OP_LOOP:
            if (!visit(s, t)) break;
            if (t.count >= in->min) s->work[n_work++] = (struct st_thread){in->b, t.count, t.frame};
            if (t.count < in->max)
                s->work[n_work++] = (struct st_thread){in->a, t.count + 1, t.frame};
            break;
        case ST_OP_CALL: {
            uint32_t frame = call(s, t, in);
            if (frame) s->work[n_work++] = (struct st_thread){in->a, 0, frame};
            break;
        }
        case ST_OP_RETURN: {
            const struct st_frame *f = &s->frames[t.frame];
            s->work[n_work++] = (struct st_thread){f->back, f->count, f->parent};
            break;
        }
        case ST_OP_FAIL:
            break;
        }
    }
}

static void begin_step(struct st_constraint_state *s) {
    s->n_visits = 0;
    if (++s->step) return;
    memset(s->visits, 0, sizeof s->visits); // the step number has wrapped around
    s->step = 1;
}

size_t st_constraint_step(struct st_constraint_state *s, size_t first, size_t n, unsigned char byte,
                          size_t to) {
    size_t end = to;
    begin_step(s);
    for (size_t i = first; i < first + n; i++) {
        struct st_thread t = s->threads[i];
        const struct st_instr *in = &s->constraint->code[t.place];
        if (in->op == ST_OP_END) continue;
        const struct st_edge *edge = &s->constraint->edges[in->a], *last = edge + in->b;
        const struct st_edge *quote = in->op == ST_OP_STRING ? edge : NULL;
        while (edge < last && (byte < edge->low || byte > edge->high)) edge++;
        if (edge == last) continue;
        if (quote && (edge == quote ? t.count < in->min : t.count >= in->max)) continue;
        if (quote && (t.count < in->min || in->max != ST_ENDLESS)) t.count++;
        t.place = edge->next;
        follow(s, t, &end);
    }
    return end - to;
}

// Drops the frames that none of threads[0, n) uses; the others keep their order.
static void drop_frames(struct st_constraint_state *s, size_t n) {
    size_t n_kept = 1;
    for (size_t i = 1; i < s->n_frames; i++) s->moved[i] = 0;
    for (size_t i = 0; i < n; i++)
        for (uint32_t f = s->threads[i].frame; f && !s->moved[f]; f = s->frames[f].parent)
            s->moved[f] = 1;
    for (size_t i = 1; i < s->n_frames; i++) {
        if (!s->moved[i]) continue;
        struct st_frame frame = s->frames[i];
        frame.parent = s->moved[frame.parent];
        s->frames[n_kept] = frame;
        s->moved[i] = (uint32_t)n_kept++;
    }
    for (size_t i = 0; i < n; i++) s->threads[i].frame = s->moved[s->threads[i].frame];
    s->n_frames = n_kept;
}

bool st_constraint_push(struct st_constraint_state *s, const char *bytes, size_t n) {
    size_t n_old = s->n_threads, first = 0, n_threads = n_old;
    for (size_t i = 0; i < n && n_threads; i++) {
        size_t to = first + n_threads;
        n_threads = st_constraint_step(s, first, n_threads, (unsigned char)bytes[i], to);
        memmove(s->threads + n_old, s->threads + to, n_threads * sizeof *s->threads);
        first = n_old;
        if (s->n_frames > ST_FRAMES_MAX / 8) drop_frames(s, n_old + n_threads);
    }
    if (n_threads) {
        memmove(s->threads, s->threads + first, n_threads * sizeof *s->threads);
        s->n_threads = n_threads;
    }
    drop_frames(s, s->n_threads);
    return n_threads > 0;
}

bool st_constraint_complete(const struct st_constraint_state *s) {
    for (size_t i = 0; i < s->n_threads; i++)
        if (s->constraint->code[s->threads[i].place].op == ST_OP_END) return true;
    return false;
}

stint_status st_constraint_begin(const struct st_constraint *constraint,
                                 struct st_constraint_state **state) {
    struct st_constraint_state *s = calloc(1, sizeof *s);
    if (!s) return st_fail(STINT_E_NOMEM, "no memory for a constraint's state");
    s->constraint = constraint;
    s->n_frames = 1;
    begin_step(s);
    follow(s, (struct st_thread){constraint->start, 0, 0}, &s->n_threads);
    *state = s;
    return STINT_OK;
}

void st_constraint_end(struct st_constraint_state *state) {
    free(state);
}
