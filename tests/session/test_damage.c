// SPDX-License-Identifier: Apache-2.0
// Bytes of a package that change, in each kind of section it has: whoever reads them next says so
// by the section's name. A session that runs never answers otherwise than before. A package tries
// the kinds that those before it lack; with STINT_CI_LONG=1 each tries all of its own.
#include "support/bounded.h"

#include "session/weights/bounded.h"

#include <fcntl.h>
#include <unistd.h>
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct ts_bounded_variant variants[] = {
    {"shadow columns, a tied head", "models/novels-2", 0, 512, 0, 0},
    {"neurons, predictors, 3 bits a step", "models/novels-2-drelu", 4, 2048, 3, 0},
    {"nested, 3 bits a step", "models/novels-2", 0, 512, 3, 0},
    {"one set", "models/novels-2", 0, 128, 3, 8},
    {"experts, 3 bits a step", "fixtures/models/mixtral", 0, 128, 3, 0},
    {"biases", "fixtures/models/qwen2", 0, 128, 0, 0},
    {"a GGUF file", "fixtures/models/llama-q/q4_k_m.gguf", 0, 128, 0, 0},
};

// Who finds it: a model that is opened, a session that begins, one that runs.
enum { BY_MODEL = 1, BY_BEGINNING = 2, BY_RUNNING = 4, BY_ALL = 7 };

// A kind is what sections are called, without the numbers of layers, experts and bits.
static struct kind {
    const char *name;
    unsigned by;
    unsigned found;
} kinds[] = {
    {"blk..attn_norm.weight", BY_MODEL, 0},
    {"blk..ffn_norm.weight", BY_MODEL, 0},
    {"config.json", BY_MODEL, 0},
    {"embedding.in_head", BY_MODEL, 0},
    {"expert.column_checks", BY_MODEL, 0},
    {"expert.column_scales", BY_MODEL, 0},
    {"expert.hot", BY_MODEL, 0},
    {"expert.input", BY_MODEL, 0},
    {"expert.nested_checks", BY_MODEL, 0},
    {"expert.nested_rows", BY_MODEL, 0},
    {"expert.scale", BY_MODEL, 0},
    {"expert.sums", BY_MODEL, 0},
    {"generation_config.json", BY_MODEL, 0},
    {"head.column_checks", BY_MODEL, 0},
    {"head.column_scales", BY_MODEL, 0},
    {"head.hot", BY_MODEL, 0},
    {"head.input", BY_MODEL, 0},
    {"head.nested_checks", BY_MODEL, 0},
    {"head.nested_rows", BY_MODEL, 0},
    {"head.scale", BY_MODEL, 0},
    {"head.sums", BY_MODEL, 0},
    {"layers..neurons.bits", BY_MODEL, 0},
    {"layers..neurons.checks", BY_MODEL, 0},
    {"layers..neurons.order", BY_MODEL, 0},
    {"layers..neurons.rates", BY_MODEL, 0},
    {"layers..predict_in.input", BY_MODEL, 0},
    {"layers..predict_in.rank", BY_MODEL, 0},
    {"layers..predict_in.scale", BY_MODEL, 0},
    {"layers..predict_in.sums", BY_MODEL, 0},
    {"layers..predict_out.bias", BY_MODEL, 0},
    {"layers..predict_out.input", BY_MODEL, 0},
    {"layers..predict_out.scale", BY_MODEL, 0},
    {"layers..predict_out.sums", BY_MODEL, 0},
    {"linear.bias", BY_MODEL, 0},
    {"linear.column_checks", BY_MODEL, 0},
    {"linear.column_scales", BY_MODEL, 0},
    {"linear.hot", BY_MODEL, 0},
    {"linear.input", BY_MODEL, 0},
    {"linear.nested_bias", BY_MODEL, 0},
    {"linear.nested_checks", BY_MODEL, 0},
    {"linear.nested_rows", BY_MODEL, 0},
    {"linear.scale", BY_MODEL, 0},
    {"linear.sums", BY_MODEL, 0},
    {"metadata.gguf", BY_MODEL, 0},
    {"model.layers..block_sparse_moe.gate.weight", BY_MODEL, 0},
    {"model.layers..input_layernorm.weight", BY_MODEL, 0},
    {"model.layers..post_attention_layernorm.weight", BY_MODEL, 0},
    {"model.norm.weight", BY_MODEL, 0},
    {"nested.bits", BY_MODEL, 0},
    {"nested.precisions", BY_MODEL, 0},
    {"nested.stored", BY_MODEL, 0},
    {"output_norm.weight", BY_MODEL, 0},
    {"stint.json", BY_MODEL, 0},
    {"tokenizer.json", BY_MODEL, 0},
    {"tokenizer_config.json", BY_MODEL, 0},
    {"layers..predict_in.weight", BY_BEGINNING, 0},
    {"layers..predict_out.weight", BY_BEGINNING, 0},
    {"expert.nested", BY_BEGINNING | BY_RUNNING, 0},
    {"expert.weight", BY_BEGINNING | BY_RUNNING, 0},
    {"head.nested", BY_BEGINNING | BY_RUNNING, 0},
    {"head.weight", BY_BEGINNING | BY_RUNNING, 0},
    {"layers..neurons", BY_BEGINNING | BY_RUNNING, 0},
    {"linear.nested", BY_BEGINNING | BY_RUNNING, 0},
    {"linear.weight", BY_BEGINNING | BY_RUNNING, 0},
    {"expert.columns", BY_ALL, 0},
    {"expert.nested_groups", BY_ALL, 0},
    {"head.columns", BY_ALL, 0},
    {"head.nested_groups", BY_ALL, 0},
    {"linear.columns", BY_ALL, 0},
    {"linear.nested_groups", BY_ALL, 0},
    {"model.embed_tokens.weight", BY_ALL, 0},
    {"token_embd.weight", BY_ALL, 0},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static bool has_type[ST_N_SECTION_TYPES];

// "layers.3.q.nested_groups4" is a "linear.nested_groups".
static void kind_of(const char *section, char name[ST_PACKAGE_NAME + 1]) {
    static const char *const linears[] = {".qkv.", ".q.",    ".k.",  ".v.",
                                          ".o.",   ".gate.", ".up.", ".down."};
    const char *rest = section;
    for (size_t i = 0; i < sizeof linears / sizeof *linears && rest == section; i++) {
        const char *at = strncmp(section, "layers.", 7) == 0 ? strstr(section, linears[i]) : NULL;
        if (at) rest = at + strlen(linears[i]);
    }
    if (rest != section)
        name += sprintf(name, "%s.", strstr(section, ".experts.") ? "expert" : "linear");
    for (; *rest; rest++)
        if (!isdigit((unsigned char)*rest)) *name++ = *rest;
    *name = 0;
}

static struct kind *find(const char *name) {
    for (size_t i = 0; i < N_KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    print_error("'%s': no case\n", name);
    return NULL;
}

// ---- Changing the file

// Turns over a bit of every byte of all sections of a kind.
static void turn_over(const char *kind) {
    const struct st_package *package = ts_bounded.lazy->checkpoint.package;
    struct stat before;
    int file = ts_bounded_open(&before);
    for (size_t i = 0; i < st_package_count(package); i++) {
        const struct st_section *s = st_package_at(package, i);
        off_t at = (off_t)st_package_offset(package, s);
        char name[ST_PACKAGE_NAME + 1];
        kind_of(s->name, name);
        if (strcmp(name, kind) != 0 || s->bytes == 0) continue;
        unsigned char *bytes = malloc(s->bytes);
        assert_int_equal(pread(file, bytes, s->bytes, at), s->bytes);
        for (size_t b = 0; b < s->bytes; b++) bytes[b] ^= 16;
        assert_int_equal(pwrite(file, bytes, s->bytes, at), s->bytes);
        free(bytes);
    }
    ts_bounded_close(file, &before);
}

// The section that an error is about is one of this kind.
static void assert_names(const char *kind) {
    const struct st_package *package = ts_bounded.lazy->checkpoint.package;
    for (size_t i = 0; i < st_package_count(package); i++) {
        char name[ST_PACKAGE_NAME + 1], quoted[ST_PACKAGE_NAME + 3];
        const char *section = st_package_at(package, i)->name;
        kind_of(section, name);
        snprintf(quoted, sizeof quoted, "'%s'", section);
        if (strcmp(name, kind) == 0 && strstr(stint_error_text(), quoted)) return;
    }
    fail_msg("'%s' is damaged, the error says: %s", kind, stint_error_text());
}

// ---- Who finds it

// True if it is an error. Else nothing was different.
static bool is_found(stint_status status, const char *kind, const float *got) {
    size_t bytes = TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got;
    if (status == STINT_OK && got && memcmp(got, ts_bounded.wanted, bytes) != 0)
        fail_msg("'%s' is damaged: another answer", kind);
    if (status == STINT_OK) return false;
    if (status != STINT_E_FORMAT) fail_msg("'%s' is damaged: %s", kind, stint_error_text());
    assert_names(kind);
    return true;
}

static unsigned by_running(stint_session *s, const char *kind, float *got) {
    return is_found(ts_bounded_eval(s, got), kind, got) ? BY_RUNNING : 0;
}

static unsigned by_beginning(uint64_t memory, const char *kind, float *got) {
    stint_session *s = NULL;
    stint_status status = ts_bounded_try(ts_bounded.lazy, memory, true, &s);
    if (is_found(status, kind, NULL)) return BY_BEGINNING;
    bool found = is_found(ts_bounded_eval(s, got), kind, NULL);
    stint_session_close(s);
    return found ? BY_BEGINNING : 0;
}

static unsigned by_model(const char *kind) {
    stint_model_options o = {.size = sizeof o, .lazy = true};
    stint_model *m = NULL;
    stint_status status = stint_model_open(ts_bounded.package, &o, &m);
    stint_model_close(m);
    return is_found(status, kind, NULL) ? BY_MODEL : 0;
}

// Another text than that of the session so far: rows of the embedding are read for it.
static void run_another_text(stint_session *s) {
    for (size_t i = 0; i < TS_BOUNDED_IDS; i++)
        ts_bounded.ids[i] = (ts_bounded.ids[i] + 1) % (int32_t)ts_bounded_vocab();
    float *got = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
    assert_int_equal(ts_bounded_eval(s, got), STINT_OK);
    for (size_t i = 0; i < TS_BOUNDED_IDS; i++)
        ts_bounded.ids[i] =
            (ts_bounded.ids[i] + (int32_t)ts_bounded_vocab() - 1) % (int32_t)ts_bounded_vocab();
    free(got);
}

static void try_kind(struct kind *kind, uint64_t memory) {
    float *got = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
    stint_session *s = ts_bounded_session(ts_bounded.lazy, memory, false);
    run_another_text(s);
    turn_over(kind->name);
    kind->found |= by_running(s, kind->name, got);
    kind->found |= by_beginning(memory, kind->name, got);
    kind->found |= by_model(kind->name);
    turn_over(kind->name);
    ts_bounded_goes_on(s, got);
    stint_session_close(s);
    free(got);
}

static void damage_of_every_kind_is_found(void **state) {
    (void)state;
    const struct st_package *package = ts_bounded.lazy->checkpoint.package;
    bool tried[N_KINDS] = {false}, unknown = false;
    bool tries_all = ts_is_long();
    uint64_t memory = ts_bounded_min(1);
    for (size_t i = 0; i < st_package_count(package); i++) {
        const struct st_section *s = st_package_at(package, i);
        char name[ST_PACKAGE_NAME + 1];
        kind_of(s->name, name);
        struct kind *kind = find(name);
        has_type[s->type] = true;
        unknown |= !kind;
        bool again = kind && (tried[kind - kinds] || (!tries_all && kind->found == kind->by));
        if (!kind || again || s->bytes == 0) continue;
        tried[kind - kinds] = true;
        try_kind(kind, memory);
    }
    if (unknown) fail_msg("a kind of section has no case here: say who finds it");
}

// Of all variants together.
static void every_kind_was_there_and_found(void **state) {
    (void)state;
    bool as_said = true;
    for (size_t i = 0; i < N_KINDS; i++) {
        bool said = kinds[i].found && (kinds[i].found & ~kinds[i].by) == 0;
        as_said &= said;
        if (!said)
            print_error("'%s': found by %u, not by %u\n", kinds[i].name, kinds[i].found,
                        kinds[i].by);
    }
    assert_true(as_said);
    for (size_t i = 0; i < ST_N_SECTION_TYPES; i++)
        if (!has_type[i]) fail_msg("no package has sections of type %zu", i);
}

int main(void) {
    const struct CMUnitTest one = cmocka_unit_test(damage_of_every_kind_is_found);
    const struct CMUnitTest all[] = {cmocka_unit_test(every_kind_was_there_and_found)};
    int failed = 0;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        failed |= ts_bounded_run(&variants[i], false, &one, 1);
    return failed | cmocka_run_group_tests(all, NULL, NULL);
}
