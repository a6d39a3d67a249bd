// SPDX-License-Identifier: Apache-2.0
// Laws that every schedule keeps, over random graphs; and how good the policies are.
#include "sched/graph.h"

#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SEEDS = 10000, MAX_NODES = 4096, MAX_EDGES = 1 << 16, SMALL = 14, SMALL_CASES = 400 };

static struct tg_room room;
static double begins[MAX_NODES], ends[MAX_NODES], scratch[MAX_NODES];

static int open_all(void **state) {
    (void)state;
    return tg_open(&room, MAX_NODES, MAX_EDGES);
}

static int close_all(void **state) {
    (void)state;
    tg_close(&room);
    return 0;
}

// ---- Graphs

static void random_dag(uint32_t n, uint32_t n_processors) {
    st_dag_begin(&room.dag, n_processors);
    for (uint32_t i = 0; i < n; i++)
        st_dag_add(&room.dag, (struct st_node){.processor = (uint8_t)ts_random_below(n_processors),
                                               .seconds = (float)(1 + ts_random_below(20))});
    for (uint32_t to = 1; to < n; to++)
        for (uint32_t k = (uint32_t)ts_random_below(4); k > 0; k--) {
            uint32_t from = (uint32_t)ts_random_below(to);
            bool twice = false;
            for (uint32_t e = 0; e < room.dag.n_added; e++)
                twice = twice || (room.dag.from[e] == from && room.dag.to[e] == to);
            if (!twice) st_dag_need(&room.dag, from, to);
        }
    st_dag_finish(&room.dag);
}

// A prefill: NPU subgraphs of 1 to 20, those of the CPU about half of it, attention growing.
static void random_prefill(uint32_t n_layers, uint32_t n_chunks, bool shadows) {
    static float seconds[64 * ST_NODE_KINDS];
    static uint8_t shadowed[64 * ST_N_SUBGRAPHS];
    struct st_prefill_plan plan = {.n_layers = n_layers, .n_chunks = n_chunks, .seconds = seconds};
    float base[ST_NODE_KINDS];
    for (int kind = 0; kind < ST_NODE_KINDS; kind++) {
        bool npu = kind < ST_N_SUBGRAPHS && st_subgraphs[kind].processor == ST_PROCESSOR_NPU;
        plan.processor[kind] = npu ? ST_PROCESSOR_NPU : ST_PROCESSOR_CPU;
        base[kind] = ts_random_float(1.0f, npu ? 20.0f : 8.0f);
    }
    for (uint32_t i = 0; i < n_chunks; i++)
        for (int kind = 0; kind < ST_NODE_KINDS; kind++)
            seconds[i * ST_NODE_KINDS + (uint32_t)kind] =
                base[kind] * (kind == ST_SUBGRAPH_ATTENTION ? 1.0f + (float)i : 1.0f);
    for (uint32_t i = 0; i < n_layers * ST_N_SUBGRAPHS; i++) {
        bool npu = st_subgraphs[i % ST_N_SUBGRAPHS].processor == ST_PROCESSOR_NPU;
        shadowed[i] = shadows && npu && ts_random_below(4) == 0 ? ST_SHADOW_BESIDE : 0;
        if (shadowed[i] && ts_random_below(2)) shadowed[i] = ST_SHADOW_AFTER;
        if (shadowed[i] && i % ST_N_SUBGRAPHS == ST_SUBGRAPH_FFN)
            shadowed[i] = (uint8_t)(ST_SHADOW_BEFORE | (ts_random_below(2) ? ST_SHADOW_AFTER : 0));
    }
    if (shadows) plan.shadowed = shadowed;
    if (n_chunks > 2 && ts_random_below(2)) plan.window = 2;
    assert_true(st_prefill_nodes(&plan) <= MAX_NODES && st_prefill_edges(&plan) <= MAX_EDGES);
    st_prefill_dag(&plan, &room.dag);
    assert_int_equal(room.dag.n, st_prefill_nodes(&plan));
    assert_true(room.dag.n_edges <= st_prefill_edges(&plan));
}

// ---- Laws

static double run(const char *policy) {
    st_timeline_simulate(&room.schedule, &room.dag, st_policy_find(policy), &room.timeline);
    return st_timeline_add_up(&room.timeline).seconds;
}

static void check_dependencies(void) {
    for (uint32_t i = 0; i < room.dag.n; i++)
        for (uint32_t e = 0; e < room.dag.nodes[i].n_edges; e++)
            assert_true(begins[room.dag.edges[room.dag.nodes[i].first_edge + e]] >= ends[i]);
}

// When a node's last need was met.
static double ready_at(uint32_t node) {
    double ready = 0.0;
    for (uint32_t e = 0; e < room.dag.n_added; e++)
        if (room.dag.to[e] == node) ready = fmax(ready, ends[room.dag.from[e]]);
    return ready;
}

// Each processor runs one node at a time, and waits only while none is ready; in order, while the
// next one is not.
static void check_processor(uint32_t p, bool in_order) {
    double now = 0.0;
    for (;;) {
        double begin = INFINITY;
        uint32_t first = ST_NO_NODE;
        for (uint32_t i = 0; i < room.dag.n; i++) {
            if (room.dag.nodes[i].processor != p || begins[i] < now) continue;
            if (begins[i] < begin) first = i;
            begin = fmin(begin, begins[i]);
        }
        if (first == ST_NO_NODE) return;
        for (uint32_t i = 0; i < room.dag.n; i++) {
            if (room.dag.nodes[i].processor != p || begins[i] < begin) continue;
            assert_true(i == first || begins[i] >= ends[first]);
            if (in_order) assert_true(i >= first);
            if (!in_order || i == first) assert_true(fmax(ready_at(i), now) >= begin);
        }
        now = ends[first];
    }
}

static void check_run(const struct st_policy *policy) {
    double seconds = run(policy->name);
    assert_int_equal(room.timeline.n, room.dag.n);
    assert_int_equal(room.schedule.n_left, 0);
    for (uint32_t i = 0; i < room.dag.n; i++) begins[i] = -1.0;
    for (uint32_t i = 0; i < room.timeline.n; i++) {
        const struct st_event *e = &room.timeline.events[i];
        assert_true(begins[e->node] < 0.0);
        begins[e->node] = e->begin;
        ends[e->node] = e->end;
        assert_true(e->end - e->begin == (double)room.dag.nodes[e->node].seconds);
    }
    check_dependencies();
    for (uint32_t p = 0; p < room.dag.n_processors; p++) check_processor(p, !policy->score);
    assert_true(seconds >= st_dag_longest_path(&room.dag, scratch) - 1e-9);
    assert_true(seconds >= st_dag_busiest(&room.dag, NULL) - 1e-9);
}

static void every_schedule_keeps_the_laws(void **state) {
    (void)state;
    for (int seed = 0; seed < SEEDS; seed++) {
        random_dag(1 + (uint32_t)ts_random_below(40), 1 + (uint32_t)ts_random_below(3));
        // Whole times add up without rounding.
        for (int i = 0; st_policies[i]; i++) check_run(st_policies[i]);
    }
}

static void a_run_is_the_same_every_time(void **state) {
    (void)state;
    static struct st_event first[MAX_NODES];
    for (int seed = 0; seed < 100; seed++) {
        random_prefill(3, 4, true);
        for (int i = 0; st_policies[i]; i++) {
            run(st_policies[i]->name);
            memcpy(first, room.timeline.events, room.timeline.n * sizeof *first);
            run(st_policies[i]->name);
            assert_memory_equal(first, room.timeline.events, room.timeline.n * sizeof *first);
        }
    }
}

// ---- Against the optimum

struct search {
    double best, free[ST_MAX_PROCESSORS], end[SMALL], left[ST_MAX_PROCESSORS], path[SMALL];
    uint32_t done;
};

static bool can_run(const struct search *s, uint32_t node, double *begin) {
    *begin = s->free[room.dag.nodes[node].processor];
    for (uint32_t e = 0; e < room.dag.n_added; e++) {
        if (room.dag.to[e] != node) continue;
        if (!(s->done >> room.dag.from[e] & 1)) return false;
        *begin = fmax(*begin, s->end[room.dag.from[e]]);
    }
    return true;
}

static double bound(const struct search *s) {
    double min = 0.0, begin;
    for (uint32_t p = 0; p < room.dag.n_processors; p++) min = fmax(min, s->free[p] + s->left[p]);
    for (uint32_t i = 0; i < room.dag.n; i++)
        if (!(s->done >> i & 1) && can_run(s, i, &begin)) min = fmax(min, begin + s->path[i]);
    return min;
}

// All orders in which nodes can be put behind each other, without those that cannot be shorter.
static void branch(struct search *s) {
    if (s->done == (1u << room.dag.n) - 1) {
        double seconds = 0.0;
        for (uint32_t p = 0; p < room.dag.n_processors; p++) seconds = fmax(seconds, s->free[p]);
        s->best = fmin(s->best, seconds);
        return;
    }
    if (bound(s) >= s->best) return;
    for (uint32_t i = 0; i < room.dag.n; i++) {
        double begin;
        if (s->done >> i & 1 || !can_run(s, i, &begin)) continue;
        uint32_t p = room.dag.nodes[i].processor;
        double was_free = s->free[p], seconds = (double)room.dag.nodes[i].seconds;
        s->free[p] = s->end[i] = begin + seconds;
        s->left[p] -= seconds;
        s->done |= 1u << i;
        branch(s);
        s->done &= ~(1u << i);
        s->left[p] += seconds;
        s->free[p] = was_free;
    }
}

static double optimum(double known) {
    struct search s = {.best = known + 1e-9};
    st_dag_longest_path(&room.dag, s.path);
    for (uint32_t i = 0; i < room.dag.n; i++)
        s.left[room.dag.nodes[i].processor] += (double)room.dag.nodes[i].seconds;
    branch(&s);
    return s.best;
}

static void ooo_is_near_the_optimum(void **state) {
    (void)state;
    double sum[3] = {0}, worst[3] = {0};
    for (int i = 0; i < SMALL_CASES; i++) {
        // One layer of two chunks, and random graphs of as many nodes.
        if (i % 2)
            random_prefill(1, 2, false);
        else
            random_dag(SMALL, 2);
        assert_true(room.dag.n <= SMALL);
        double best = optimum(fmin(run("inorder"), fmin(run("ooo"), run("heft"))));
        for (int p = 0; p < 3; p++) {
            double ratio = run(st_policies[p]->name) / best;
            assert_true(ratio > 1.0 - 1e-6);
            sum[p] += ratio;
            worst[p] = fmax(worst[p], ratio);
        }
    }
    for (int p = 0; p < 3; p++)
        printf("%s over the optimum: mean %.3f, worst %.3f of %d\n", st_policies[p]->name,
               sum[p] / SMALL_CASES, worst[p], SMALL_CASES);
    assert_true(sum[1] / SMALL_CASES <= 1.10);
}

static void ooo_is_never_worse_than_inorder(void **state) {
    (void)state;
    double sum = 0.0, min = INFINITY, max = 0.0, worst_alone = 0.0;
    enum { CASES = 2000 };
    for (int i = 0; i < CASES; i++) {
        random_prefill(1 + (uint32_t)ts_random_below(8), 1 + (uint32_t)ts_random_below(10),
                       ts_random_below(2));
        const struct st_policy *settled =
            st_timeline_settle(&room.schedule, &room.dag, st_policy_find("ooo"), &room.timeline);
        double alone = run("ooo"), in_order = run("inorder");
        double ratio = run(settled->name) / in_order;
        worst_alone = fmax(worst_alone, alone / in_order);
        assert_true(ratio <= 1.01);
        sum += ratio;
        min = fmin(min, ratio);
        max = fmax(max, ratio);
    }
    printf("ooo over inorder: mean %.3f, from %.3f to %.3f of %d; without settling up to %.3f\n",
           sum / CASES, min, max, CASES, worst_alone);
    assert_true(sum / CASES < 0.9);
}

// Eq. 6 of llm.npu, by hand: on the CPU what frees the longer NPU subgraph goes first, on the NPU
// what frees the shorter CPU subgraph; a node that waits for two counts for neither.
static void ooo_picks_the_largest_contribution(void **state) {
    (void)state;
    for (uint8_t first = 0; first < 2; first++) {
        uint8_t then = !first;
        st_dag_begin(&room.dag, 2);
        uint32_t a = st_dag_add(&room.dag, (struct st_node){.processor = first, .seconds = 1.0f});
        uint32_t b = st_dag_add(&room.dag, (struct st_node){.processor = first, .seconds = 1.0f});
        uint32_t c = st_dag_add(&room.dag, (struct st_node){.processor = then, .seconds = 2.0f});
        uint32_t d = st_dag_add(&room.dag, (struct st_node){.processor = then, .seconds = 5.0f});
        uint32_t e = st_dag_add(&room.dag, (struct st_node){.processor = then, .seconds = 50.0f});
        st_dag_need(&room.dag, a, c);
        st_dag_need(&room.dag, b, d);
        st_dag_need(&room.dag, a, e);
        st_dag_need(&room.dag, b, e);
        st_dag_finish(&room.dag);
        st_schedule_begin(&room.schedule, &room.dag, st_policy_find("ooo"));
        bool cpu = first == ST_PROCESSOR_CPU;
        assert_int_equal(st_schedule_pick(&room.schedule, first), cpu ? b : a);
        assert_int_equal(st_schedule_pick(&room.schedule, then), ST_NO_NODE);
        st_schedule_begin(&room.schedule, &room.dag, st_policy_find("inorder"));
        assert_int_equal(st_schedule_pick(&room.schedule, first), a);
    }
}

// ---- The prefill's graph

// needed[a][b]: b runs before a can.
static void close_transitively(uint8_t *needed, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = 0; e < room.dag.nodes[i].n_edges; e++) {
            uint32_t to = room.dag.edges[room.dag.nodes[i].first_edge + e];
            needed[to * n + i] = 1;
        }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            for (uint32_t k = 0; needed[i * n + j] && k < j; k++)
                needed[i * n + k] |= needed[j * n + k];
}

static void a_prefill_needs_what_the_paper_says(void **state) {
    (void)state;
    enum { LAYERS = 3, CHUNKS = 4 };
    random_prefill(LAYERS, CHUNKS, false);
    while (room.dag.nodes[0].n_edges == 0) random_prefill(LAYERS, CHUNKS, false);
    uint32_t n = room.dag.n, per_chunk = LAYERS * ST_N_SUBGRAPHS;
    uint8_t *needed = calloc(n, n), *wanted = calloc(n, n);
    close_transitively(needed, n);
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++)
        for (uint32_t j = 1; j < per_chunk; j++) {
            uint32_t node = chunk * per_chunk + j;
            bool attention = j % ST_N_SUBGRAPHS == ST_SUBGRAPH_ATTENTION;
            for (uint32_t i = attention ? 0 : chunk; i <= chunk; i++)
                wanted[node * n + i * per_chunk + j - 1] = 1;
        }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            if (wanted[i * n + j]) assert_true(needed[i * n + j]);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(room.dag.nodes[i].chunk, i / per_chunk);
        assert_int_equal(room.dag.nodes[i].layer, i % per_chunk / ST_N_SUBGRAPHS);
        assert_int_equal(room.dag.nodes[i].kind, i % ST_N_SUBGRAPHS);
    }
    free(needed);
    free(wanted);
}

// Never more chunks under way than there are buffers for.
static void a_window_bounds_the_chunks_under_way(void **state) {
    (void)state;
    float seconds[9 * ST_NODE_KINDS];
    uint8_t shadowed[2 * ST_N_SUBGRAPHS] = {[ST_SUBGRAPH_QKV] = ST_SHADOW_AFTER,
                                            [ST_N_SUBGRAPHS + ST_SUBGRAPH_FFN] =
                                                ST_SHADOW_BEFORE | ST_SHADOW_AFTER};
    struct st_prefill_plan plan = {
        .n_layers = 2, .n_chunks = 9, .seconds = seconds, .shadowed = shadowed};
    for (size_t i = 0; i < 9 * ST_NODE_KINDS; i++) seconds[i] = ts_random_float(1.0f, 9.0f);
    for (uint32_t window = 1; window <= 9; window++) {
        plan.window = window;
        plan.processor[ST_SUBGRAPH_QKV] = plan.processor[ST_SUBGRAPH_FFN] = ST_PROCESSOR_NPU;
        st_prefill_dag(&plan, &room.dag);
        for (int p = 0; st_policies[p]; p++) {
            double first[9], last[9];
            run(st_policies[p]->name);
            for (int c = 0; c < 9; c++) first[c] = INFINITY, last[c] = 0.0;
            for (uint32_t i = 0; i < room.timeline.n; i++) {
                const struct st_event *e = &room.timeline.events[i];
                uint32_t c = room.dag.nodes[e->node].chunk;
                first[c] = fmin(first[c], e->begin);
                last[c] = fmax(last[c], e->end);
            }
            for (uint32_t c = window; c < 9; c++) assert_true(first[c] >= last[c - window]);
        }
    }
}

static void every_policy_is_found_by_its_name(void **state) {
    (void)state;
    size_t n = 0;
    for (; st_policies[n]; n++) {
        const struct st_policy *found;
        assert_string_equal(stint_order_name(n), st_policies[n]->name);
        assert_int_equal(st_policy_select(stint_order_name(n), &found), STINT_OK);
        assert_ptr_equal(found, st_policies[n]);
        assert_true(*found->about);
    }
    assert_true(n >= 3);
    assert_null(stint_order_name(n));
    assert_null(stint_order_name(SIZE_MAX));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_keeps_the_laws),
        cmocka_unit_test(a_run_is_the_same_every_time),
        cmocka_unit_test(ooo_is_near_the_optimum),
        cmocka_unit_test(every_policy_is_found_by_its_name),
        cmocka_unit_test(ooo_is_never_worse_than_inorder),
        cmocka_unit_test(ooo_picks_the_largest_contribution),
        cmocka_unit_test(a_prefill_needs_what_the_paper_says),
        cmocka_unit_test(a_window_bounds_the_chunks_under_way),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
