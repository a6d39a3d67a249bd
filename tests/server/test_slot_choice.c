// SPDX-License-Identifier: Apache-2.0
// Which slot a request gets: a conversation stays in its own, what it shares with others is copied,
// and no conversation is given up while a slot is empty.
#include "server/answers.h"
#include "support/novels.h"

#include <string.h>

enum { SHARED = 40, OWN = 20, N_PROMPT = SHARED + OWN, KEPT = N_PROMPT + TS_ANSWER_TOKENS - 1 };

static void random_ids(int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(3 + ts_random_below(4000));
}

// A conversation that begins with `shared`, or with something of its own where that is NULL.
struct talk {
    int32_t ids[N_PROMPT + TS_ANSWER_TOKENS + OWN];
    size_t n;
};

static void begin(struct talk *talk, const int32_t *shared) {
    random_ids(talk->ids, N_PROMPT);
    if (shared != NULL) memcpy(talk->ids, shared, SHARED * sizeof *shared);
    talk->n = N_PROMPT;
}

// Adds the answer to the conversation, and the next question.
static void go_on(struct talk *talk, const struct answer *answer) {
    memcpy(talk->ids + talk->n, answer->ids, answer->n_ids * sizeof *answer->ids);
    talk->n += answer->n_ids;
    random_ids(talk->ids + talk->n, OWN);
    talk->n += OWN;
}

static struct answer ask_talk(struct st_scheduler *s, const struct talk *talk) {
    return ask(s, talk->ids, talk->n);
}

// As it is without anything to reuse.
static void assert_fresh(const struct talk *talk, const struct answer *got) {
    struct st_scheduler *s = open_scheduler(ts_novels, 1);
    struct answer wanted = ask_talk(s, talk);
    assert_int_equal(wanted.reused, 0);
    assert_int_equal(got->n_ids, wanted.n_ids);
    assert_memory_equal(got->ids, wanted.ids, wanted.n_ids * sizeof(int32_t));
    st_scheduler_close(s);
}

static void a_common_beginning_costs_no_conversation(void **state) {
    (void)state;
    struct st_scheduler *s = open_scheduler(ts_novels, 2);
    struct talk a, b;
    begin(&a, NULL);
    begin(&b, a.ids);
    struct answer first = ask_talk(s, &a), second = ask_talk(s, &b);
    assert_int_equal(first.reused, 0);
    assert_int_equal(second.reused, SHARED); // copied
    assert_fresh(&b, &second);
    go_on(&a, &first);
    go_on(&b, &second);
    first = ask_talk(s, &a);
    second = ask_talk(s, &b);
    assert_int_equal(first.reused, KEPT);
    assert_int_equal(second.reused, KEPT);
    st_scheduler_close(s);
}

static void without_an_empty_slot_the_oldest_goes(void **state) {
    (void)state;
    struct st_scheduler *s = open_scheduler(ts_novels, 2);
    struct talk a, b, c;
    begin(&a, NULL);
    begin(&b, NULL);
    ask_talk(s, &a);
    struct answer second = ask_talk(s, &b);
    random_ids(c.ids, N_PROMPT);
    memcpy(c.ids, b.ids, 10 * sizeof *b.ids); // less than the rest of b
    c.n = N_PROMPT;
    struct answer third = ask_talk(s, &c);
    assert_int_equal(third.reused, 10);
    assert_fresh(&c, &third);
    go_on(&b, &second);
    assert_int_equal(ask_talk(s, &b).reused, KEPT);
    assert_int_equal(ask_talk(s, &a).reused, 0);
    st_scheduler_close(s);
}

static void another_version_of_an_answer_keeps_its_slot_when_all_are_full(void **state) {
    (void)state;
    struct st_scheduler *s = open_scheduler(ts_novels, 2);
    struct talk a, b;
    begin(&a, NULL);
    begin(&b, NULL);
    struct answer first = ask_talk(s, &a);
    ask_talk(s, &b);
    assert_int_equal(ask_talk(s, &b).reused, N_PROMPT - 1); // again: b's own slot
    go_on(&a, &first);
    assert_int_equal(ask_talk(s, &a).reused, KEPT);
    st_scheduler_close(s);
}

static void a_seed_reuses_what_prompts_have_computed(void **state) {
    (void)state;
    struct st_scheduler *s = open_scheduler(ts_novels, 2);
    const stint_sampling sampling = {.size = sizeof sampling, .temperature = 1, .seed = 7};
    struct st_scheduler_request r = {
        .exact = true, .options = {.sampling = &sampling, .max_tokens = TS_ANSWER_TOKENS}};
    struct talk a, b;
    struct answer first = NEW_ANSWER, next = NEW_ANSWER, other = NEW_ANSWER;
    begin(&a, NULL);
    begin(&b, a.ids);
    r.prompt = a.ids;
    r.n_prompt = a.n;
    submit(s, &r, &first);
    wait_end(&first);
    go_on(&a, &first);
    r.n_prompt = a.n;
    submit(s, &r, &next);
    wait_end(&next);
    assert_int_equal(next.reused, N_PROMPT); // not the answer, which steps have computed
    r.prompt = b.ids;
    r.n_prompt = b.n;
    submit(s, &r, &other);
    wait_end(&other);
    assert_int_equal(other.reused, SHARED);
    st_scheduler_close(s);
}

static void nothing_is_copied_from_another_owner(void **state) {
    (void)state;
    struct st_scheduler *s = open_scheduler(ts_novels, 2);
    struct talk a;
    begin(&a, NULL);
    ask_talk(s, &a);
    struct answer theirs = NEW_ANSWER;
    const struct st_scheduler_request r = {
        .prompt = a.ids, .n_prompt = a.n, .owner = 5, .options.max_tokens = TS_ANSWER_TOKENS};
    submit(s, &r, &theirs);
    wait_end(&theirs);
    assert_int_equal(theirs.reused, 0);
    assert_int_equal(ask_talk(s, &a).reused, N_PROMPT - 1); // the other's is in the empty slot
    st_scheduler_close(s);
}

// Requests that come together have it computed once, each with the bits that it has alone.
static void a_prompt_of_several_is_computed_once(void **state) {
    (void)state;
    enum { N = 3 };
    struct st_scheduler *s = open_scheduler(ts_novels, N);
    stint_sampling warm[N];
    struct answer together[N];
    struct talk a;
    size_t reused = 0;
    begin(&a, NULL);
    struct st_scheduler_request r = {
        .prompt = a.ids, .n_prompt = a.n, .exact = true, .options.max_tokens = TS_ANSWER_TOKENS};
    for (size_t i = 0; i < N; i++) {
        together[i] = (struct answer)NEW_ANSWER;
        warm[i] = (stint_sampling){.size = sizeof *warm, .temperature = 1, .seed = i};
        r.options.sampling = &warm[i];
        submit(s, &r, &together[i]);
    }
    for (size_t i = 0; i < N; i++) {
        wait_end(&together[i]);
        reused += together[i].reused;
    }
    assert_int_equal(reused, (N - 1) * (N_PROMPT - 1));
    st_scheduler_close(s);
    for (size_t i = 0; i < N; i++) {
        struct answer alone = NEW_ANSWER;
        s = open_scheduler(ts_novels, 1);
        r.options.sampling = &warm[i];
        submit(s, &r, &alone);
        wait_end(&alone);
        assert_int_equal(alone.n_ids, together[i].n_ids);
        assert_memory_equal(alone.ids, together[i].ids, alone.n_ids * sizeof *alone.ids);
        st_scheduler_close(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_common_beginning_costs_no_conversation),
        cmocka_unit_test(without_an_empty_slot_the_oldest_goes),
        cmocka_unit_test(another_version_of_an_answer_keeps_its_slot_when_all_are_full),
        cmocka_unit_test(a_seed_reuses_what_prompts_have_computed),
        cmocka_unit_test(nothing_is_copied_from_another_owner),
        cmocka_unit_test(a_prompt_of_several_is_computed_once),
    };
    return cmocka_run_group_tests(tests, ts_novels_open, ts_novels_close);
}
