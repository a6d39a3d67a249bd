// SPDX-License-Identifier: Apache-2.0
#include "constraint/code.h"

#include "base/buffer.h"
#include "base/size.h"
#include "constraint/constraint.h"

#include <stdlib.h>
#include <string.h>

void st_code_open(struct st_code *code) {
    *code = (struct st_code){.out = calloc(1, sizeof *code->out)};
    if (!code->out) code->status = st_fail(STINT_E_NOMEM, "no memory for a constraint");
    st_code_instr(code, (struct st_instr){.op = ST_OP_FAIL});
    code->end = st_code_instr(code, (struct st_instr){.op = ST_OP_END});
}

void st_constraint_free(struct st_constraint *constraint) {
    if (!constraint) return;
    free(constraint->code);
    free(constraint->edges);
    free(constraint);
}

uint32_t st_code_instr(struct st_code *code, struct st_instr instr) {
    struct st_constraint *c = code->out;
    if (code->status != STINT_OK) return 0;
    if (c->n >= ST_CODE_MAX)
        code->status = st_fail(STINT_E_LIMIT, "the schema takes more than %d steps", ST_CODE_MAX);
    else
        code->status = st_grow((void **)&c->code, &c->capacity, c->n, 1, sizeof *c->code);
    if (code->status != STINT_OK) return 0;
    instr.need = ST_NEED_NEVER;
    c->code[c->n] = instr;
    return (uint32_t)c->n++;
}

uint32_t st_code_return(struct st_code *code) {
    return st_code_instr(code, (struct st_instr){.op = ST_OP_RETURN});
}

uint32_t st_code_split(struct st_code *code, uint32_t a, uint32_t b) {
    if (!a || !b || a == b) return a ? a : b;
    return st_code_instr(code, (struct st_instr){.op = ST_OP_SPLIT, .a = a, .b = b});
}

uint32_t st_code_ahead(struct st_code *code) {
    return st_code_instr(code, (struct st_instr){.op = ST_OP_SPLIT});
}

void st_code_set(struct st_code *code, uint32_t ahead, uint32_t place) {
    if (code->status == STINT_OK) code->out->code[ahead].a = place;
}

uint32_t st_code_call(struct st_code *code, uint32_t rule, bool nests, uint32_t next) {
    if (!rule || !next) return 0;
    return st_code_instr(code,
                         (struct st_instr){.op = ST_OP_CALL, .nests = nests, .a = rule, .b = next});
}

uint32_t st_code_edges(struct st_code *code, const struct st_edge *edges, size_t n) {
    struct st_constraint *c = code->out;
    if (code->status != STINT_OK) return 0;
    size_t first = c->n_edges;
    code->status = st_grow((void **)&c->edges, &c->edge_capacity, first, n, sizeof *c->edges);
    if (code->status != STINT_OK) return 0;
    for (size_t i = 0; i < n; i++)
        if (edges[i].next) c->edges[c->n_edges++] = edges[i];
    if (c->n_edges == first) return 0;
    return st_code_instr(code, (struct st_instr){.op = ST_OP_BYTE,
                                                 .a = (uint32_t)first,
                                                 .b = (uint32_t)(c->n_edges - first)});
}

uint32_t st_code_byte(struct st_code *code, uint8_t low, uint8_t high, uint32_t next) {
    struct st_edge edge = {low, high, next};
    return st_code_edges(code, &edge, 1);
}

uint32_t st_code_text(struct st_code *code, const char *text, size_t n, uint32_t next) {
    while (n-- && next) next = st_code_byte(code, (uint8_t)text[n], (uint8_t)text[n], next);
    return next;
}

static int by_bytes(const void *a, const void *b) {
    const struct st_literal *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, st_min(x->n, y->n));
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

static size_t shared_bytes(const struct st_literal *a, const struct st_literal *b) {
    size_t i = 0, n = st_min(a->n, b->n);
    while (i < n && a->bytes[i] == b->bytes[i]) i++;
    return i;
}

static size_t first_bytes(const struct st_literal *l, size_t n, size_t at) {
    size_t different = 0;
    for (size_t i = 0; i < n; i++) different += i == 0 || l[i].bytes[at] != l[i - 1].bytes[at];
    return different;
}

// Writes literals that share their first `from` bytes. Their next common bytes are written once, so
// each recursion separates at least one literal. The worst case, literals that are each a byte
// longer than the one before, is bounded by ST_CODE_MAX.
static uint32_t write_literals(struct st_code *code, const struct st_literal *l, size_t n,
                               size_t from) {
    size_t shared = n == 1 ? l[0].n : shared_bytes(&l[0], &l[n - 1]); // sorted: of all
    size_t i = 0, n_edges = 0;
    uint32_t rest = 0;
    for (; i < n && l[i].n == shared; i++) rest = st_code_split(code, l[i].next, rest);
    if (i < n && code->status == STINT_OK) {
        struct st_edge *edges = calloc(first_bytes(l + i, n - i, shared), sizeof *edges);
        if (!edges) code->status = st_fail(STINT_E_NOMEM, "no memory for a constraint");
        while (i < n && code->status == STINT_OK) {
            size_t first = i;
            uint8_t byte = (uint8_t)l[i].bytes[shared];
            while (i < n && (uint8_t)l[i].bytes[shared] == byte) i++;
            uint32_t next = write_literals(code, l + first, i - first, shared + 1);
            edges[n_edges++] = (struct st_edge){byte, byte, next};
        }
        rest = st_code_split(code, st_code_edges(code, edges, n_edges), rest);
        free(edges);
    }
    return st_code_text(code, l[0].bytes + from, shared - from, rest);
}

uint32_t st_code_literals(struct st_code *code, struct st_literal *literals, size_t n) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) bytes += literals[i].n;
    if (n == 0 || code->status != STINT_OK) return 0;
    if (bytes > ST_CODE_MAX) {
        code->status =
            st_fail(STINT_E_LIMIT, "the schema's fixed texts have %zu bytes; the maximum is %d",
                    bytes, ST_CODE_MAX);
        return 0;
    }
    qsort(literals, n, sizeof *literals, by_bytes);
    return write_literals(code, literals, n, 0);
}

static uint8_t min_need(const struct st_constraint *c, const struct st_instr *in) {
    uint8_t need = ST_NEED_NEVER;
    for (uint32_t i = 0; i < in->b; i++) {
        uint8_t other = c->code[c->edges[in->a + i].next].need;
        if (other < need) need = other;
    }
    return need;
}

static uint8_t need_of(const struct st_constraint *c, const struct st_instr *in) {
    switch ((enum st_op)in->op) {
    case ST_OP_BYTE:
    case ST_OP_STRING:
        return min_need(c, in);
    case ST_OP_SPLIT:
        return (uint8_t)st_min(c->code[in->a].need, c->code[in->b].need);
    case ST_OP_CALL: {
        size_t inside = st_min(c->code[in->a].need + (size_t)in->nests, ST_NEED_NEVER);
        return (uint8_t)st_max(inside > ST_NEST_MAX ? ST_NEED_NEVER : inside, c->code[in->b].need);
    }
    case ST_OP_LOOP: // the repeated part was possible once, so it is possible again
        return c->code[in->b].need;
    case ST_OP_END:
    case ST_OP_RETURN:
        return 0;
    default:
        return ST_NEED_NEVER;
    }
}

// Computes the least solution. The direction alternates: inside a rule code leads downwards, from
// rule to rule it leads upwards.
static void find_needs(struct st_constraint *c) {
    for (bool changed = true, down = false; changed; down = !down) {
        changed = false;
        for (size_t i = 0; i < c->n; i++) {
            struct st_instr *in = &c->code[down ? c->n - 1 - i : i];
            uint8_t need = need_of(c, in);
            changed = changed || need != in->need;
            in->need = need;
        }
    }
}

stint_status st_code_close(struct st_code *code, uint32_t value,
                           struct st_constraint **constraint) {
    struct st_constraint *c = code->out;
    if (code->status == STINT_OK) {
        c->start = value;
        find_needs(c);
        if (c->code[value].need > ST_NEST_MAX)
            code->status = st_fail(
                STINT_E_ARG, "schema: no JSON text of at most %d levels matches it", ST_NEST_MAX);
    }
    if (code->status == STINT_OK)
        *constraint = c;
    else
        st_constraint_free(c);
    code->out = NULL;
    return code->status;
}
