// SPDX-License-Identifier: Apache-2.0
// Which parts of nested weights are pinned, and that a step's other parts are in pieces: each part
// of a precision in one of the two, however much room there is.
#include "base/loader.h"
#include "session/precision/precision.h"
#include "session/weights/pinned.h"
#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const sources[] = {"fixtures/models/qwen2", "fixtures/models/mixtral"};
static const char *source;
static uint32_t one_set; // stored bits
static stint_model *model;

static int open_model(void **state) {
    (void)state;
    char path[600];
    snprintf(path, sizeof path, "%s/m.stint", ts_temp_folder());
    stint_prepare_options o = {.size = sizeof o,
                               .n_tokens = 100,
                               .outliers = STINT_OUTLIERS_NONE,
                               .bits_low = 2,
                               .bits_high = 4,
                               .one_set = one_set};
    ts_prepare(ts_shared(source), path, &o);
    stint_model_options lazy = {.size = sizeof lazy, .no_tokenizer = true, .lazy = true};
    assert_int_equal(stint_model_open(path, &lazy, &model), STINT_OK);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(model);
    return 0;
}

static uint64_t all_bytes(unsigned precisions) {
    struct st_pins all = {.precisions = precisions, .limit = ST_PINS_ALL};
    return st_pinned_bytes(model, &all);
}

struct looking {
    struct st_pins pins;
    struct st_file_pieces pieces;
    unsigned bits;                    // of a run
    const struct st_file_strip *next; // behind the linear's
    size_t n_pinned, n_streamed, n_experts_pinned, n_experts_streamed, n_linears;
};

// The part is pinned, or the piece's next strip with the same bytes.
static void find_part(struct looking *l, const struct st_nested_place *p, bool pinned,
                      const void *data, size_t bytes, const struct st_file_strip **strip) {
    const struct st_checkpoint *c = &model->checkpoint;
    bool expert = model->config.n_experts && st_int8_is_ffn(p->id.role);
    *(expert ? &l->n_experts_pinned : &l->n_pinned) += pinned;
    *(expert ? &l->n_experts_streamed : &l->n_streamed) += !pinned;
    if (pinned) return;
    bool in_part = p->id.role == ST_INT8_HEAD && l->pins.drafts >> l->bits & 1;
    size_t panels = bytes / (*strip)->group_bytes, rows = st_draft_head_rows(&model->config);
    if (in_part) panels = st_nested_padded_rows(rows) / ST_NESTED_PANEL;
    assert_int_equal((*strip)->bytes, panels * (*strip)->group_bytes);
    assert_int_equal(bytes % (*strip)->group_bytes, 0);
    assert_int_equal((*strip)->hashed, !in_part);
    assert_int_equal((*strip)->part_bytes, in_part ? bytes : 0);
    assert_ptr_equal(c->maps->data + (*strip)->offset, data);
    ++*strip;
}

static const struct st_file_piece *piece_of(const struct looking *l, uint32_t index,
                                            unsigned bits) {
    return &l->pieces.at[st_pins_place(model, &l->pins, index, bits)];
}

// The piece of steps that draft, if the run takes that, too; it says so.
static const struct st_file_piece *base_of(const struct looking *l,
                                           const struct st_nested_place *p) {
    unsigned drafts = st_pins_lowest(l->pins.drafts);
    bool expert = model->config.n_experts && st_int8_is_ffn(p->id.role);
    if (!drafts || l->bits <= drafts || l->bits == ST_NESTED_STORED) return NULL;
    const struct st_file_piece *base = piece_of(l, p->index, drafts);
    assert_int_equal(base->also >> l->bits & 1, p->id.role != ST_INT8_HEAD && !expert);
    return base->also >> l->bits & 1 ? base : NULL;
}

static stint_status look(void *context, const struct st_nested_place *p) {
    struct looking *l = context;
    const struct st_nested_weight *w = p->linear->nested;
    bool int8 = l->bits == ST_NESTED_STORED, second = int8 && st_pins_is_second(model, p);
    unsigned own = int8 ? one_set : w->bits[l->bits], grid = int8 ? w->high : own;
    const struct st_file_piece *piece = piece_of(l, p->index - second, l->bits);
    const struct st_file_piece *base = base_of(l, p);
    const struct st_file_strip *strip = second ? l->next : piece->strips, *of_base;
    unsigned base_top = base ? w->bits[base->bits] : 0;
    assert_true(!second || piece_of(l, p->index, l->bits)->n_strips == 0);
    of_base = base ? base->strips : NULL;
    bool below = true;
    l->n_linears = p->index + 1;
    assert_int_equal(piece->bits, l->bits);
    assert_memory_equal(&piece->linear, &p->id, sizeof p->id);
    for (unsigned bit = 2; bit <= own; bit++) {
        bool pinned = st_pins_plane(&l->pins, model, p, bit);
        assert_true(below || !pinned); // what is pinned of the codes has no gaps
        below = pinned;
        find_part(l, p, pinned, st_nested_plane(w, bit),
                  st_nested_padded_rows(p->n_out) / ST_NESTED_PANEL *
                      st_nested_plane_panel_bytes(p->n_in, bit),
                  bit <= base_top ? &of_base : &strip);
    }
    find_part(l, p, st_pins_groups(&l->pins, model, p, grid), w->groups[grid],
              st_nested_group_bytes(p->n_out, p->n_in), base_top == grid ? &of_base : &strip);
    l->next = strip;
    bool more = int8 && p->id.role == ST_INT8_UP && !second; // the strips of up follow
    assert_true(more || strip - piece->strips == piece->n_strips);
    return STINT_OK;
}

static struct looking look_at(unsigned precisions, unsigned drafts, uint64_t room) {
    struct looking l = {.pins = {.precisions = precisions, .drafts = drafts}};
    l.pins.limit = st_pins_fit(model, &l.pins, room);
    struct st_arena measure = st_arena_measure(), arena;
    st_pins_pieces(model, &l.pins, &measure, &l.pieces);
    assert_int_equal(st_arena_open(&arena, measure.used), STINT_OK);
    st_pins_pieces(model, &l.pins, &arena, &l.pieces);
    assert_false(arena.overflow);
    for (l.bits = model->nested.low; l.bits <= ST_NESTED_STORED; l.bits++)
        if (precisions >> l.bits & 1) assert_int_equal(st_pins_each(model, look, &l), STINT_OK);
    st_arena_close(&arena);
    return l;
}

static void each_part_is_pinned_or_in_a_piece(void **state) {
    (void)state;
    const unsigned int8 = one_set ? 1u << ST_NESTED_STORED : 0;
    const unsigned sets[] = {int8 | 1 << 4,
                             int8 | 1 << 2,
                             int8 | 1 << 4 | 1 << 3,
                             1 << 2 | 1 << 3 | 1 << 4,
                             int8 | 1 << 2 | 1 << 4,
                             1 << 2 | 1 << 3 | 1 << 4,
                             int8};
    const unsigned drafts[] = {0, 0, 0, 0, 1 << 2, 1 << 2, 0};
    assert_true(st_pins_may_stream(model));
    for (size_t i = 0; i < sizeof sets / sizeof *sets && sets[i]; i++) {
        uint64_t all = all_bytes(sets[i]);
        size_t before = 0;
        for (uint64_t room = 0; room <= 2 * all; room += all / 7) {
            struct looking l = look_at(sets[i], drafts[i], room);
            size_t n = l.n_pinned + l.n_experts_pinned;
            assert_true(n >= before);
            assert_true(l.n_experts_pinned == 0 || l.n_experts_streamed == 0);
            assert_true(l.n_experts_pinned == 0 || l.n_streamed == 0);
            // Besides the parts there is only what names them.
            uint64_t names = 64 + l.n_linears * sizeof(struct st_nested_weight);
            assert_true(room == 0 || st_pinned_bytes(model, &l.pins) <= room + names);
            before = n;
        }
        assert_true(before > 0);
        struct looking none = look_at(sets[i], drafts[i], 0);
        struct looking full = look_at(sets[i], drafts[i], 2 * all);
        assert_int_equal(none.n_pinned + none.n_experts_pinned, 0);
        assert_int_equal(full.n_streamed + full.n_experts_streamed, 0);
    }
}

// The least room that has all is what all takes, but for names and the ends of blocks.
static void all_is_pinned_where_it_just_fits(void **state) {
    (void)state;
    uint64_t all = all_bytes(1 << 4), least = 0, most = 2 * all;
    size_t n_linears = look_at(1 << 4, 0, 0).n_linears;
    while (least < most) {
        uint64_t room = (least + most) / 2;
        if (look_at(1 << 4, 0, room).pins.limit == ST_PINS_ALL)
            most = room;
        else
            least = room + 1;
    }
    uint64_t parts = all - n_linears * sizeof(struct st_nested_weight) - 64;
    assert_in_range(least, parts, parts + 2 * n_linears * (ST_LOAD_BLOCK + 64));
}

// What only other precisions take is in neither.
static void a_precision_alone_needs_less(void **state) {
    (void)state;
    assert_true(all_bytes(1 << 2) < all_bytes(1 << 3));
    assert_true(all_bytes(1 << 4) < all_bytes(1 << 2 | 1 << 4));
}

int main(void) {
    int failed = 0;
    for (size_t i = 0; i < 2 * sizeof sources / sizeof *sources; i++) {
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(each_part_is_pinned_or_in_a_piece),
            cmocka_unit_test(all_is_pinned_where_it_just_fits),
            cmocka_unit_test(a_precision_alone_needs_less),
        };
        source = sources[i / 2];
        one_set = i % 2 ? ST_NESTED_STORED : 0;
        failed |= cmocka_run_group_tests_name(source, tests, open_model, close_model);
    }
    return failed;
}
