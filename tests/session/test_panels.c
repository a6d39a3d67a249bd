// SPDX-License-Identifier: Apache-2.0
// The panels that a bounded session takes of nested linears are the package's own: whatever is
// pinned, however small slices are, in passes that draft and in those that share their slices.
#include "session/weights/bounded.h"
#include "session/weights/source.h"
#include "support/kinds.h"
#include "support/support.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { N_ENTRIES = 14 };

static stint_model *whole, *lazy; // one package

static int open_models(void **state) {
    (void)state;
    stint_prepare_options o = {.size = sizeof o,
                               .n_tokens = 100,
                               .outliers = STINT_OUTLIERS_NONE,
                               .bits_low = 2,
                               .bits_high = 4};
    whole = ts_package(ts_built("models/novels-2"), "panels", &o);
    lazy = ts_package_on_demand("panels");
    return 0;
}

static int close_models(void **state) {
    (void)state;
    stint_model_close(whole);
    stint_model_close(lazy);
    return 0;
}

// ---- As weights/budget.c plans, with the pins that are given

static void cut(struct st_bounded *r, bool small) {
    struct st_arena measure = st_arena_measure();
    struct st_slices_plan least;
    st_pins_pieces(lazy, &r->pins, &measure, &r->pieces);
    assert_int_equal(st_arena_open(&r->table, measure.used), STINT_OK);
    st_pins_pieces(lazy, &r->pins, &r->table, &r->pieces);
    r->source = (struct st_slices_source){lazy, &r->pieces, 0, r->pins.drafts};
    st_slices_plan(&r->source, NULL, &r->plan);
    least = r->plan;
    memcpy(least.entry_bytes, least.least_bytes, sizeof least.entry_bytes);
    if (small) st_slices_plan(&r->source, &least, &r->plan);
    for (int i = 0; i < ST_N_REGIONS; i++)
        r->plan.n_entries[i] = (uint32_t)st_min(N_ENTRIES, r->plan.n_ids[i]);
}

static void open_loader(struct st_bounded *r) {
    struct st_loader_options files = {.files = lazy->checkpoint.files,
                                      .n_files = lazy->checkpoint.n_maps};
    assert_int_equal(st_loader_open(&files, &r->loader), STINT_OK);
}

static void open_parts(struct st_bounded *r) {
    open_loader(r);
    assert_int_equal(st_pinned_open(lazy, &r->pins, r->loader, &r->pinned), STINT_OK);
    assert_int_equal(st_slices_open(&r->source, &r->plan, r->loader, &r->slices), STINT_OK);
}

static void close_parts(struct st_bounded *r) {
    st_loader_drain(r->loader);
    st_loader_close(r->loader);
    st_slices_close(&r->slices);
    st_pinned_close(&r->pinned);
    st_arena_close(&r->table);
}

// ---- A pass

struct pass {
    struct st_run run;
    struct st_nested_weight of_whole[512]; // by index
    size_t n_ranges;                       // of linears that were streamed
};

static stint_status note(void *context, const struct st_nested_place *p) {
    struct pass *pass = context;
    assert_true(p->index < sizeof pass->of_whole / sizeof *pass->of_whole);
    pass->of_whole[p->index] = *p->linear->nested;
    return STINT_OK;
}

static void assert_same(const struct st_nested_weight *got, const struct st_nested_weight *all,
                        unsigned bits, size_t first, size_t n) {
    size_t group = st_nested_group_panel_bytes(all->n_in);
    for (unsigned bit = 2; bit <= bits; bit++) {
        size_t panel = st_nested_plane_panel_bytes(all->n_in, bit);
        assert_memory_equal(got->planes[bit], st_nested_plane(all, bit) + first * panel, n * panel);
    }
    assert_memory_equal(got->groups[bits], all->groups[bits] + first * group, n * group);
}

static stint_status take(void *context, const struct st_nested_place *p) {
    struct pass *pass = context;
    const struct st_run *run = &pass->run;
    const struct st_bounded *r = run->s->bounded;
    const struct st_nested_weight *w = p->linear->nested, *all = &pass->of_whole[p->index];
    bool part = p->id.role == ST_INT8_HEAD && r->pins.drafts >> run->bits & 1;
    size_t rows = part ? st_draft_head_rows(&lazy->config) : p->n_out;
    size_t n_panels = st_nested_padded_rows(rows) / ST_NESTED_PANEL;
    const struct st_nested_weight *pinned = st_bounded_nested(run, w);
    unsigned bits = w->bits[run->bits];
    if (pinned) assert_same(pinned, all, bits, 0, n_panels);
    if (pinned) return STINT_OK;
    for (struct st_panels panels = {.first = 0}; panels.first < n_panels;
         panels.first += panels.n) {
        if (st_bounded_acquire_panels(run, w, &panels) != STINT_OK)
            fail_msg("%s: %s", p->name, stint_error_text());
        assert_in_range(panels.n, 1, n_panels - panels.first);
        assert_same(&panels.weight, all, bits, panels.first, panels.n);
        st_bounded_release_panels(run, w, &panels);
        pass->n_ranges++;
    }
    return STINT_OK;
}

// Passes as drafts and the steps that verify them come.
static size_t run_passes(struct st_bounded *r) {
    static const unsigned order[] = {4, 2, 2, 4, 3, 2, 4, 4, 2};
    struct stint_session s = {.model = lazy, .bounded = r};
    static struct pass pass;
    pass.n_ranges = 0;
    assert_int_equal(st_pins_each(whole, note, &pass), STINT_OK);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (!(r->pins.precisions >> order[i] & 1)) continue;
        pass.run = (struct st_run){.s = &s, .bits = order[i]};
        st_slices_pass(&r->slices, st_pass_nested(order[i]));
        assert_int_equal(st_pins_each(lazy, take, &pass), STINT_OK);
    }
    for (int i = 0; i < ST_N_REGIONS; i++) assert_true(r->slices.regions[i].n_used <= N_ENTRIES);
    return pass.n_ranges;
}

static void panels_are_the_packages(void **state) {
    (void)state;
    const struct {
        unsigned precisions, drafts;
    } sets[] = {{1 << 2 | 1 << 4, 1 << 2},
                {1 << 2 | 1 << 3 | 1 << 4, 1 << 2},
                {1 << 3 | 1 << 4, 1 << 3},
                {1 << 2 | 1 << 4, 0}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        struct st_pins pins = {.precisions = sets[i].precisions, .drafts = sets[i].drafts};
        struct st_pins all = pins;
        all.limit = ST_PINS_ALL;
        uint64_t most = st_pinned_bytes(lazy, &all);
        size_t before = SIZE_MAX;
        for (uint64_t room = 0; room <= most + most / 5; room += most / 5) {
            struct st_bounded whole_ones = {.pins = pins}, small;
            whole_ones.pins.limit = st_pins_fit(lazy, &pins, room);
            small = whole_ones;
            cut(&whole_ones, false);
            cut(&small, true);
            open_parts(&whole_ones);
            open_parts(&small);
            size_t n = run_passes(&whole_ones), n_small = run_passes(&small);
            assert_true(n <= n_small);
            assert_true(room > 0 || n < n_small); // some linears have several slices
            close_parts(&whole_ones);
            close_parts(&small);
            before = n;
        }
        assert_int_equal(before, 0);
    }
}

// Where they have room, but for some that are small.
static void slices_of_drafts_stay(void **state) {
    (void)state;
    struct st_bounded r = {.pins = {.precisions = 1 << 2 | 1 << 4, .drafts = 1 << 2}};
    struct stint_session s = {.model = lazy, .bounded = &r};
    static struct pass pass;
    struct st_loader_counts before, after;
    uint64_t whole_bytes = 0;
    cut(&r, true);
    struct st_slices_used drafts =
        st_slices_of_pass(&r.source, &r.plan, ST_REGION_FIXED, st_pass_nested(2), NULL);
    r.plan.n_entries[ST_REGION_FIXED] = (uint32_t)drafts.slices + 1 + ST_SLICES_DEPTH;
    open_parts(&r);
    assert_int_equal(st_pins_each(whole, note, &pass), STINT_OK);
    assert_true(drafts.slices > 20 &&
                r.plan.n_ids[ST_REGION_FIXED] > r.plan.n_entries[ST_REGION_FIXED] + 20);
    for (int i = 0; i < 6; i++) {
        unsigned bits = i % 3 ? 2 : 4;
        pass.run = (struct st_run){.s = &s, .bits = bits};
        st_loader_count(r.loader, &before);
        st_slices_pass(&r.slices, st_pass_nested(bits));
        assert_int_equal(st_pins_each(lazy, take, &pass), STINT_OK);
        st_loader_drain(r.loader);
        st_loader_count(r.loader, &after);
        if (bits == 4) whole_bytes = after.bytes - before.bytes;
        if (i > 1 && bits == 2) assert_true(20 * (after.bytes - before.bytes) < whole_bytes);
    }
    close_parts(&r);
}

static void flip(uint64_t at) {
    char path[600];
    unsigned char byte;
    snprintf(path, sizeof path, "%s/panels.stint", ts_temp_folder());
    int file = open(path, O_RDWR);
    assert_int_equal(pread(file, &byte, 1, (off_t)at), 1);
    byte ^= 16;
    assert_int_equal(pwrite(file, &byte, 1, (off_t)at), 1);
    close(file);
}

// Where it cannot be drafted with, too: the hash is of the whole head.
static void damage_of_the_head_is_found(void **state) {
    (void)state;
    const struct st_package *package = lazy->checkpoint.package;
    char name[ST_INT8_NAME_BYTES + 32];
    const struct st_linear_id head = {ST_INT8_HEAD, 0, 0};
    const struct st_linear_weight *parts[ST_LINEAR_OP_PARTS];
    assert_int_equal(st_linear_parts(&lazy->weights, head, parts), 1);
    st_nested_groups_name("head", parts[0]->nested->bits[2], name);
    const char *const sections[] = {"head.nested", name};
    for (size_t i = 0; i < 2; i++) {
        const struct st_section *s = st_package_find(package, sections[i]);
        const uint64_t first = st_package_offset(package, s);
        // The first half of codes has the planes of two bits.
        const uint64_t at[] = {first, first + s->bytes / 2 - 1};
        for (size_t k = 0; k < 2; k++) {
            struct st_bounded r = {.pins = {.precisions = 1 << 2 | 1 << 4, .drafts = 1 << 2}};
            cut(&r, false);
            flip(at[k]);
            open_loader(&r);
            assert_int_equal(st_slices_open(&r.source, &r.plan, r.loader, &r.slices),
                             STINT_E_FORMAT);
            assert_non_null(strstr(stint_error_text(), sections[i]));
            flip(at[k]);
            close_parts(&r);
            cut(&r, false);
            open_parts(&r);
            close_parts(&r);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(panels_are_the_packages),
                                       cmocka_unit_test(slices_of_drafts_stay),
                                       cmocka_unit_test(damage_of_the_head_is_found)};
    return cmocka_run_group_tests(tests, open_models, close_models);
}
