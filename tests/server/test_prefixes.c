// SPDX-License-Identifier: Apache-2.0
// Prefixes on disk: what a slot gives up is found again, by another server too, and by nobody else;
// no file changes an answer, whatever is in it, and no failure ends a request. To be run with
// -DSTINT_SANITIZE=thread too.
#include "base/size.h"
#include "server/answers.h"
#include "support/novels.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_PROMPT = 100, HELD = N_PROMPT + TS_ANSWER_TOKENS - 1, N_TALKS = 4 };

static int32_t talks[N_TALKS][HELD + 1]; // prompts that have nothing in common
static struct answer fresh[N_TALKS];     // without anything to reuse

static int make_talks(void **state) {
    if (ts_novels_open(state) != 0) return 1;
    for (size_t i = 0; i < N_TALKS; i++) {
        struct st_scheduler *s = open_scheduler(ts_novels, 1);
        for (size_t k = 0; k <= HELD; k++) talks[i][k] = (int32_t)(3 + ts_random_below(4000));
        fresh[i] = ask(s, talks[i], N_PROMPT);
        st_scheduler_close(s);
    }
    return 0;
}

static struct st_prefixes in(const char *folder) {
    return (struct st_prefixes){.folder = folder, .max_bytes = UINT64_MAX, .model = 7};
}

static struct st_scheduler *open_with(const struct st_prefixes *prefixes, uint32_t n_slots) {
    struct st_scheduler *s = open_scheduler(ts_novels, n_slots);
    assert_int_equal(st_scheduler_keep_prefixes(s, prefixes), STINT_OK);
    return s;
}

// Asks a talk; returns the tokens that were reused. The answer is always the same.
static size_t ask_talk(struct st_scheduler *s, size_t i) {
    struct answer a = ask(s, talks[i], N_PROMPT);
    assert_int_equal(a.status, STINT_OK);
    assert_int_equal(a.n_ids, fresh[i].n_ids);
    assert_memory_equal(a.ids, fresh[i].ids, a.n_ids * sizeof *a.ids);
    return a.reused;
}

static size_t ask_as(struct st_scheduler *s, size_t i, uint64_t owner, bool exact) {
    struct answer a = NEW_ANSWER;
    const struct st_scheduler_request r = {.prompt = talks[i],
                                           .n_prompt = N_PROMPT,
                                           .owner = owner,
                                           .exact = exact,
                                           .options.max_tokens = TS_ANSWER_TOKENS};
    submit(s, &r, &a);
    wait_end(&a);
    assert_int_equal(a.n_ids, fresh[i].n_ids);
    assert_memory_equal(a.ids, fresh[i].ids, a.n_ids * sizeof *a.ids);
    return a.reused;
}

// ---- The folder

struct files {
    char path[700]; // of the last one
    size_t n;
    uint64_t bytes;
};

static struct files files_in(const char *folder) {
    struct files files = {0};
    DIR *open_folder = opendir(folder);
    assert_non_null(open_folder);
    for (struct dirent *entry; (entry = readdir(open_folder));) {
        struct stat info;
        if (!strstr(entry->d_name, ".prefix")) continue;
        snprintf(files.path, sizeof files.path, "%s/%s", folder, entry->d_name);
        assert_int_equal(lstat(files.path, &info), 0);
        files.n++;
        files.bytes += (uint64_t)info.st_size;
    }
    closedir(open_folder);
    return files;
}

// A folder of its own, with the first talk in a file.
static struct files save_one(char folder[600], const char *name) {
    snprintf(folder, 600, "%s/%s", ts_temp_folder(), name);
    assert_int_equal(mkdir(folder, 0700), 0);
    struct st_prefixes prefixes = in(folder);
    struct st_scheduler *s = open_with(&prefixes, 1);
    assert_int_equal(ask_talk(s, 0), 0);
    st_scheduler_close(s);
    struct files files = files_in(folder);
    assert_int_equal(files.n, 1);
    return files;
}

// What a new server makes of the folder when the first talk is asked again. It saves nothing.
static size_t ask_again(const char *folder) {
    struct st_prefixes prefixes = in(folder);
    prefixes.max_bytes = 1;
    struct st_scheduler *s = open_with(&prefixes, 1);
    size_t reused = ask_talk(s, 0);
    st_scheduler_close(s);
    return reused;
}

static void write_bytes(const char *path, const unsigned char *data, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

// ---- Tests

static void what_a_slot_gives_up_is_loaded_again(void **state) {
    (void)state;
    char folder[600];
    save_one(folder, "gives");
    struct st_prefixes prefixes = in(folder);
    struct st_scheduler *s = open_with(&prefixes, 1);
    struct st_scheduler_stats stats;
    assert_int_equal(ask_talk(s, 1), 0);
    assert_int_equal(ask_talk(s, 0), N_PROMPT - 1);
    assert_int_equal(ask_talk(s, 1), N_PROMPT - 1); // saved when the slot was needed
    st_scheduler_stats(s, &stats);
    assert_int_equal(stats.prefix_loads, 2);
    assert_int_equal(stats.prefix_saves, 1); // of the first there is a file already
    st_scheduler_close(s);
    assert_int_equal(files_in(folder).n, 2);
}

static void a_longer_conversation_takes_the_place_of_its_beginning(void **state) {
    (void)state;
    char folder[600];
    save_one(folder, "longer");
    struct st_prefixes prefixes = in(folder);
    struct st_scheduler *s = open_with(&prefixes, 1);
    int32_t next[HELD + 5];
    memcpy(next, talks[0], N_PROMPT * sizeof *next);
    memcpy(next + N_PROMPT, fresh[0].ids, TS_ANSWER_TOKENS * sizeof *next);
    for (size_t i = HELD + 1; i < HELD + 5; i++) next[i] = 77;
    assert_int_equal(ask(s, next, HELD + 5).reused, HELD);
    st_scheduler_close(s);
    assert_int_equal(files_in(folder).n, 1);
    assert_int_equal(ask_again(folder), N_PROMPT - 1);
}

static void a_part_of_a_file_serves_a_prompt_that_goes_elsewhere(void **state) {
    (void)state;
    char folder[600];
    save_one(folder, "part");
    struct st_prefixes prefixes = in(folder);
    struct st_scheduler *s = open_with(&prefixes, 1);
    int32_t other[N_PROMPT];
    memcpy(other, talks[0], sizeof other);
    other[90] ^= 1;
    assert_int_equal(ask(s, other, N_PROMPT).reused, 90);
    other[20] ^= 1;
    st_scheduler_close(s);
    s = open_with(&prefixes, 1);
    assert_int_equal(ask(s, other, N_PROMPT).reused, 0);
    st_scheduler_close(s);
}

static void a_seed_gets_what_prompts_have_computed(void **state) {
    (void)state;
    char folder[600];
    save_one(folder, "seed");
    struct st_prefixes prefixes = in(folder);
    struct st_scheduler *s = open_with(&prefixes, 1);
    struct answer a = NEW_ANSWER;
    memcpy(talks[0] + N_PROMPT, fresh[0].ids, 5 * sizeof **talks);
    const struct st_scheduler_request r = {.prompt = talks[0],
                                           .n_prompt = HELD,
                                           .exact = true,
                                           .options.max_tokens = TS_ANSWER_TOKENS};
    submit(s, &r, &a);
    wait_end(&a);
    assert_int_equal(a.reused, N_PROMPT); // not the answer, which steps have computed
    st_scheduler_close(s);
}

// Asks with a seed, which nothing but prompts may serve; fills `text` [n] on with the answer.
static size_t ask_exactly(const struct st_prefixes *prefixes, int32_t *text, size_t n,
                          uint32_t n_answer) {
    struct st_scheduler *s = open_with(prefixes, 1);
    struct answer a = NEW_ANSWER;
    const struct st_scheduler_request r = {.prompt = text,
                                           .n_prompt = n,
                                           .exact = true,
                                           .options = {.max_tokens = n_answer, .ignore_eos = true}};
    submit(s, &r, &a);
    wait_end(&a);
    assert_int_equal(a.n_ids, n_answer);
    memcpy(text + n, a.ids, n_answer * sizeof *text);
    st_scheduler_close(s);
    return a.reused;
}

// Of two files the one that more of was a prompt, though the other one is longer.
static void a_seed_gets_the_longest_prompt(void **state) {
    (void)state;
    enum { SHORT = 70, N_ANSWER = 50, LONG = 100 };
    char folder[600];
    int32_t text[128];
    struct st_prefixes prefixes = in(folder);
    snprintf(folder, sizeof folder, "%s/longest", ts_temp_folder());
    assert_int_equal(mkdir(folder, 0700), 0);
    memcpy(text, talks[0], SHORT * sizeof *text);
    assert_int_equal(ask_exactly(&prefixes, text, SHORT, N_ANSWER), 0);
    int32_t same[LONG + 2];
    memcpy(same, text, LONG * sizeof *same);
    assert_int_equal(ask_exactly(&prefixes, same, LONG, 2), SHORT);
    assert_int_equal(files_in(folder).n, 2);
    assert_int_equal(ask_exactly(&prefixes, text, SHORT + N_ANSWER, 2), LONG);
}

// Of what a slot loses for a prompt that begins alike only the larger part is worth a file.
static void a_slot_that_keeps_most_saves_nothing(void **state) {
    (void)state;
    enum { N_TEXT = 150 };
    const struct {
        size_t kept;
        uint64_t n_saves;
    } cases[] = {{80, 0}, {70, 1}}; // 70 or 80 are lost, and a few for the answer
    char folder[600];
    snprintf(folder, sizeof folder, "%s/most", ts_temp_folder());
    assert_int_equal(mkdir(folder, 0700), 0);
    struct st_prefixes prefixes = in(folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct st_scheduler *s = open_scheduler_for(ts_novels, 1, 256);
        struct st_scheduler_stats stats;
        int32_t text[N_TEXT];
        for (size_t k = 0; k < N_TEXT; k++) text[k] = (int32_t)(3 + ts_random_below(4000));
        assert_int_equal(st_scheduler_keep_prefixes(s, &prefixes), STINT_OK);
        ask(s, text, N_TEXT);
        text[cases[i].kept] ^= 1;
        assert_int_equal(ask(s, text, N_TEXT).reused, cases[i].kept);
        st_scheduler_stats(s, &stats);
        assert_int_equal(stats.prefix_saves, cases[i].n_saves);
        st_scheduler_close(s);
    }
}

static void nobody_else_finds_it(void **state) {
    (void)state;
    char folder[600];
    save_one(folder, "else");
    struct st_prefixes prefixes = in(folder);
    struct st_scheduler *s = open_with(&prefixes, 1);
    assert_int_equal(ask_as(s, 0, 5, false), 0); // another key
    assert_int_equal(ask_as(s, 0, 0, false), N_PROMPT - 1);
    st_scheduler_close(s);
    prefixes.model++;
    s = open_with(&prefixes, 1);
    assert_int_equal(ask_talk(s, 0), 0);
    st_scheduler_close(s);
    assert_int_equal(files_in(folder).n, 3);
}

static void damaged_files_change_no_answer(void **state) {
    (void)state;
    char folder[600];
    struct files files = save_one(folder, "damaged");
    size_t n = (size_t)files.bytes;
    unsigned char *data = malloc(n);
    FILE *file = fopen(files.path, "rb");
    assert_true(data && file && fread(data, 1, n, file) == n);
    fclose(file);
    for (size_t at = 8; at < n; at += n / 9) {
        data[at] ^= 0x40;
        write_bytes(files.path, data, n);
        data[at] ^= 0x40;
        if (ask_again(folder) == 0)
            assert_int_equal(files_in(folder).n, 0); // it was removed
        else
            assert_int_equal(files_in(folder).n, 1); // between sections, where nothing is read
    }
    for (size_t keep = 0; keep < n; keep += n / 3) {
        write_bytes(files.path, data, keep);
        assert_int_equal(ask_again(folder), 0);
        assert_int_equal(files_in(folder).n, 0);
    }
    write_bytes(files.path, data, n);
    assert_int_equal(ask_again(folder), N_PROMPT - 1);
    free(data);
}

static void a_file_under_another_name_serves_nobody(void **state) {
    (void)state;
    char folder[600], mine[600];
    struct files other, files = save_one(folder, "name");
    snprintf(mine, sizeof mine, "%s/theirs", ts_temp_folder());
    assert_int_equal(mkdir(mine, 0700), 0);
    struct st_prefixes prefixes = in(mine);
    struct st_scheduler *s = open_with(&prefixes, 1);
    ask_talk(s, 1);
    st_scheduler_close(s);
    other = files_in(mine);
    assert_int_equal(rename(other.path, files.path), 0);
    assert_int_equal(ask_again(folder), 0);
    assert_int_equal(files_in(folder).n, 0);
}

// Links, folders, and names that are nearly right.
static void other_things_in_the_folder_are_left_alone(void **state) {
    (void)state;
    char folder[600], path[1500];
    struct files files = save_one(folder, "things");
    const char *name = strrchr(files.path, '/') + 1;
    snprintf(path, sizeof path, "%s/../secret", folder);
    assert_int_equal(rename(files.path, path), 0);
    assert_int_equal(symlink("../secret", files.path), 0);
    assert_int_equal(ask_again(folder), 0);
    assert_int_equal(unlink(files.path), 0);
    assert_int_equal(mkdir(files.path, 0700), 0);
    assert_int_equal(ask_again(folder), 0);
    for (size_t n = 1; n < strlen(name); n += 9) {
        snprintf(path, sizeof path, "%s/%.*s.prefix", folder, (int)n, name);
        fclose(fopen(path, "w"));
        snprintf(path, sizeof path, "%s/%.*sG%s", folder, (int)n, name, name + n + 1);
        fclose(fopen(path, "w"));
    }
    size_t before = files_in(folder).n;
    struct st_prefixes prefixes = in(folder);
    prefixes.max_bytes = 1 << 20;
    struct st_scheduler *s = open_with(&prefixes, 1);
    for (size_t i = 1; i < N_TALKS; i++) ask_talk(s, i);
    st_scheduler_close(s);
    assert_true(files_in(folder).n >= before);
}

static void the_bound_holds_and_the_oldest_goes(void **state) {
    (void)state;
    char folder[600];
    struct files files = save_one(folder, "bound");
    struct st_prefixes prefixes = in(folder);
    prefixes.max_bytes = files.bytes * 2 + files.bytes / 2;
    struct st_scheduler *s = open_with(&prefixes, 1);
    assert_int_equal(ask_talk(s, 1), 0);
    assert_int_equal(ask_talk(s, 2), 0);            // 1 is saved
    assert_int_equal(ask_talk(s, 0), N_PROMPT - 1); // 2 is saved, and 1 is removed
    st_scheduler_close(s);
    files = files_in(folder);
    assert_true(files.n == 2 && files.bytes <= prefixes.max_bytes);
    prefixes.max_bytes = files.bytes / 4; // less than one takes
    s = open_with(&prefixes, 1);
    ask_talk(s, 3);
    st_scheduler_close(s);
    assert_int_equal(files_in(folder).n, 2);
}

// By its seconds, whose parts say the contrary.
static void the_oldest_may_be_much_older(void **state) {
    (void)state;
    char folder[600];
    struct files old = save_one(folder, "old");
    struct timespec times[2];
    for (int i = 0; i < 2; i++) times[i] = (struct timespec){1000000000, 999999999};
    assert_int_equal(utimensat(AT_FDCWD, old.path, times, 0), 0);
    struct st_prefixes prefixes = in(folder);
    prefixes.max_bytes = old.bytes * 2 + old.bytes / 2;
    struct st_scheduler *s = open_with(&prefixes, 1);
    assert_int_equal(ask_talk(s, 1), 0);
    assert_int_equal(ask_talk(s, 2), 0);
    st_scheduler_close(s);
    assert_int_equal(files_in(folder).n, 2);
    assert_int_equal(access(old.path, F_OK), -1);
}

static void a_full_disk_costs_no_answer(void **state) {
    (void)state;
    char folder[600];
    struct files files = save_one(folder, "full");
    struct rlimit limit, less = {.rlim_cur = files.bytes / 2};
    getrlimit(RLIMIT_FSIZE, &limit);
    less.rlim_max = limit.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    struct st_prefixes prefixes = in(folder);
    struct st_scheduler *s = open_with(&prefixes, 1);
    assert_int_equal(ask_talk(s, 1), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
    size_t reused = ask_talk(s, 2);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(reused, 0);
    assert_int_equal(files_in(folder).n, 1);
    assert_int_equal(ask_talk(s, 1), 0); // it could not be saved
    assert_int_equal(ask_talk(s, 0), N_PROMPT - 1);
    st_scheduler_close(s);
    char gone[700];
    snprintf(gone, sizeof gone, "%s-gone", folder);
    prefixes.folder = gone; // it never was there
    s = open_with(&prefixes, 1);
    for (size_t i = 0; i < 3; i++) assert_int_equal(ask_talk(s, i), 0);
    st_scheduler_close(s);
}

static void *serve_all(void *context) {
    struct st_scheduler *s = open_with(context, 1);
    for (size_t round = 0; round < 3; round++)
        for (size_t i = 0; i < N_TALKS; i++) ask_talk(s, i);
    st_scheduler_close(s);
    return NULL;
}

static void two_servers_share_a_folder(void **state) {
    (void)state;
    char folder[600];
    struct files files = save_one(folder, "shared");
    struct st_prefixes prefixes = in(folder);
    pthread_t threads[2];
    prefixes.max_bytes = files.bytes * 2 + files.bytes / 2;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, serve_all, &prefixes), 0);
    for (size_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    files = files_in(folder);
    assert_true(files.n > 0 && files.bytes <= prefixes.max_bytes);
}

static void canceled_requests_end_while_files_are_read(void **state) {
    (void)state;
    char folder[600];
    save_one(folder, "canceled");
    struct st_prefixes prefixes = in(folder);
    struct st_scheduler *s = open_with(&prefixes, 1);
    struct answer answers[8];
    for (size_t i = 0; i < 8; i++) {
        answers[i] = (struct answer)NEW_ANSWER;
        const struct st_scheduler_request r = {
            .prompt = talks[i % N_TALKS], .n_prompt = N_PROMPT, .options.max_tokens = 20};
        uint64_t ticket;
        assert_int_equal(st_scheduler_submit(s, &r, take_event, &answers[i], &ticket), STINT_OK);
        if (i % 2) st_scheduler_cancel(s, ticket);
    }
    st_scheduler_close(s);
    for (size_t i = 0; i < 8; i++) assert_true(answers[i].end != ST_SCHEDULER_GOES_ON);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_slot_gives_up_is_loaded_again),
        cmocka_unit_test(a_longer_conversation_takes_the_place_of_its_beginning),
        cmocka_unit_test(a_part_of_a_file_serves_a_prompt_that_goes_elsewhere),
        cmocka_unit_test(a_seed_gets_what_prompts_have_computed),
        cmocka_unit_test(a_seed_gets_the_longest_prompt),
        cmocka_unit_test(a_slot_that_keeps_most_saves_nothing),
        cmocka_unit_test(nobody_else_finds_it),
        cmocka_unit_test(damaged_files_change_no_answer),
        cmocka_unit_test(a_file_under_another_name_serves_nobody),
        cmocka_unit_test(other_things_in_the_folder_are_left_alone),
        cmocka_unit_test(the_bound_holds_and_the_oldest_goes),
        cmocka_unit_test(the_oldest_may_be_much_older),
        cmocka_unit_test(a_full_disk_costs_no_answer),
        cmocka_unit_test(two_servers_share_a_folder),
        cmocka_unit_test(canceled_requests_end_while_files_are_read),
    };
    return cmocka_run_group_tests(tests, make_talks, ts_novels_close);
}
