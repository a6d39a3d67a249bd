// SPDX-License-Identifier: Apache-2.0
#include "server/scheduler/prefixes.h"

#include "base/size.h"
#include "session/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum {
    MAX_MARKS = 24, // up to 10,000 tokens or so
    MARK_DIGITS = 6,
    HEAD_DIGITS = 16 + 8 + 8 + 16, // scope, length, prompted, hash
    LOCK_TRIES = 100,
    LOCK_WAIT_NS = 10000000,
};
static const char ending[] = ".prefix", digits[] = "0123456789abcdef";

// What a file's name tells.
struct about {
    uint64_t scope, hash;
    size_t length, prompted, n_marks;
    uint32_t marks[MAX_MARKS];
};

static uint64_t scope_of(const struct st_prefixes *prefixes, uint64_t owner) {
    const uint64_t both[] = {prefixes->model, owner};
    return XXH3_64bits(both, sizeof both);
}

static uint64_t hash_of(const int32_t *tokens, size_t n) {
    return XXH3_64bits(tokens, n * sizeof *tokens);
}

static size_t next_mark(size_t n) {
    return n + n / 4;
}

static size_t make_marks(const int32_t *tokens, size_t n, uint32_t marks[MAX_MARKS]) {
    size_t n_marks = 0;
    for (size_t at = ST_PREFIX_MIN; at <= n && n_marks < MAX_MARKS; at = next_mark(at))
        marks[n_marks++] = hash_of(tokens, at) & 0xffffff;
    return n_marks;
}

static struct about describe(const struct st_prefixes *prefixes, uint64_t owner,
                             const struct st_sequence *held) {
    struct about about = {.scope = scope_of(prefixes, owner),
                          .hash = hash_of(held->history, held->length),
                          .length = held->length,
                          .prompted = held->prompted};
    about.n_marks = make_marks(held->history, held->length, about.marks);
    return about;
}

static void write_name(const struct about *about, char name[NAME_MAX + 1]) {
    int n = snprintf(name, NAME_MAX + 1, "%016llx-%08zx-%08zx-%016llx-",
                     (unsigned long long)about->scope, about->length, about->prompted,
                     (unsigned long long)about->hash);
    for (size_t i = 0; i < about->n_marks; i++)
        n += snprintf(name + n, NAME_MAX + 1 - (size_t)n, "%06x", about->marks[i]);
    snprintf(name + n, NAME_MAX + 1 - (size_t)n, "%s", ending);
}

// Reads so many hexadecimal digits and what ends them; false: it is not so.
static bool read_hex(const char **at, size_t n, char after, uint64_t *value) {
    *value = 0;
    for (size_t i = 0; i < n; i++, ++*at) {
        const char *digit = **at ? strchr(digits, **at) : NULL;
        if (!digit) return false;
        *value = *value << 4 | (uint64_t)(digit - digits);
    }
    if (after == 0) return true;
    return *(*at)++ == after;
}

static bool read_name(const char *name, struct about *about) {
    uint64_t length, prompted, mark;
    size_t n = strlen(name), fixed = HEAD_DIGITS + 4 + sizeof ending - 1;
    if (n < fixed || (n - fixed) % MARK_DIGITS || (n - fixed) / MARK_DIGITS > MAX_MARKS)
        return false;
    about->n_marks = (n - fixed) / MARK_DIGITS;
    if (!read_hex(&name, 16, '-', &about->scope) || !read_hex(&name, 8, '-', &length) ||
        !read_hex(&name, 8, '-', &prompted) || !read_hex(&name, 16, '-', &about->hash))
        return false;
    for (size_t i = 0; i < about->n_marks; i++) {
        if (!read_hex(&name, MARK_DIGITS, 0, &mark)) return false;
        about->marks[i] = (uint32_t)mark;
    }
    about->length = (size_t)length;
    about->prompted = (size_t)prompted;
    return strcmp(name, ending) == 0;
}

// ---- The folder

// Calls `see` for each of our files; links and what else lies there are passed over. `see` returns
// true to have the file removed.
static bool look(const struct st_prefixes *prefixes,
                 bool (*see)(void *context, const char *name, const struct about *about,
                             const struct stat *info),
                 void *context) {
    DIR *folder = opendir(prefixes->folder);
    if (!folder) return false;
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct about about;
        struct stat info;
        if (!read_name(entry->d_name, &about) ||
            fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode) || info.st_uid != geteuid())
            continue;
        if (see(context, entry->d_name, &about, &info)) unlinkat(dirfd(folder), entry->d_name, 0);
    }
    closedir(folder);
    return true;
}

static stint_status path_of(const struct st_prefixes *prefixes, const char *name, char **path) {
    return asprintf(path, "%s/%s", prefixes->folder, name) < 0
               ? st_fail(STINT_E_NOMEM, "no memory for a saved prefix")
               : STINT_OK;
}

// A file that was used is the last to go.
static void touch(const char *path) {
    utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

// ---- Finding and loading

struct search {
    uint64_t scope;
    const int32_t *tokens;
    size_t n, n_context, n_marks;
    uint32_t marks[MAX_MARKS];
    bool exact;
    struct st_prefix_file *found;
};

static bool compare(void *context, const char *name, const struct about *about,
                    const struct stat *info) {
    struct search *s = context;
    (void)info;
    if (about->scope != s->scope || about->length > s->n_context) return false;
    size_t n = 0, at = ST_PREFIX_MIN, n_marks = st_min(about->n_marks, s->n_marks);
    for (size_t i = 0; i < n_marks && about->marks[i] == s->marks[i]; i++, at = next_mark(at))
        n = at;
    if (about->length <= s->n && about->length > n &&
        hash_of(s->tokens, about->length) == about->hash)
        n = about->length;
    if (s->exact) n = st_min(n, about->prompted);
    if (n > s->found->n) {
        s->found->n = n;
        snprintf(s->found->name, sizeof s->found->name, "%s", name);
    }
    return false;
}

bool st_prefixes_find(const struct st_prefixes *prefixes, uint64_t owner, const int32_t *tokens,
                      size_t n, bool exact, struct st_prefix_file *found) {
    struct search s = {.scope = scope_of(prefixes, owner),
                       .tokens = tokens,
                       .n = n,
                       .n_context = prefixes->n_context,
                       .exact = exact,
                       .found = found};
    char *path;
    s.n_marks = make_marks(tokens, n, s.marks);
    found->n = 0;
    if (!look(prefixes, compare, &s) || found->n < ST_PREFIX_MIN ||
        path_of(prefixes, found->name, &path) != STINT_OK)
        return false;
    touch(path);
    free(path);
    return true;
}

// A name tells what a file holds; one that was put under another name serves nobody.
static stint_status check_name(const struct st_prefixes *prefixes, stint_session *session,
                               uint32_t sequence, uint64_t owner, const char *name) {
    struct st_sequence *held = &session->sequences[sequence];
    struct about about = describe(prefixes, owner, held);
    char own[NAME_MAX + 1];
    write_name(&about, own);
    if (strcmp(own, name) == 0) return STINT_OK;
    st_sequence_truncate(held, 0);
    return st_fail(STINT_E_FORMAT, "%s/%s: holds other tokens than its name tells",
                   prefixes->folder, name);
}

stint_status st_prefixes_load(const struct st_prefixes *prefixes, stint_session *session,
                              uint32_t sequence, uint64_t owner,
                              const struct st_prefix_file *file) {
    char *path;
    ST_TRY(path_of(prefixes, file->name, &path));
    stint_status status = stint_session_load(session, sequence, path);
    if (status == STINT_OK) status = check_name(prefixes, session, sequence, owner, file->name);
    if (status == STINT_E_FORMAT || status == STINT_E_ARG || status == STINT_E_UNSUPPORTED)
        unlink(path);
    free(path);
    return status;
}

// ---- Saving

// One server at a time makes room and fills it. -1: another one takes long.
static int lock(const struct st_prefixes *prefixes) {
    char *path;
    if (path_of(prefixes, "lock", &path) != STINT_OK) return -1;
    int file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    free(path);
    for (int i = 0; file >= 0 && i < LOCK_TRIES; i++) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0) return file;
        nanosleep(&(struct timespec){.tv_nsec = LOCK_WAIT_NS}, NULL);
    }
    if (file >= 0) close(file);
    st_fail(STINT_E_IO, "%s: cannot be locked: %s", prefixes->folder, strerror(errno));
    return -1;
}

struct room {
    const struct about *wanted;
    const struct st_sequence *held;
    uint64_t bytes; // of all files
    char oldest[NAME_MAX + 1];
    struct timespec used;
};

static bool is_older(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

static bool count(void *context, const char *name, const struct about *about,
                  const struct stat *info) {
    struct room *room = context;
    // A beginning of what is to be saved, which serves no request better.
    if (about->scope == room->wanted->scope && about->length < room->wanted->length &&
        about->prompted <= room->wanted->prompted &&
        about->hash == hash_of(room->held->history, about->length))
        return true;
    room->bytes += (uint64_t)info->st_size;
    if (!room->oldest[0] || is_older(&info->st_mtim, &room->used)) {
        snprintf(room->oldest, sizeof room->oldest, "%s", name);
        room->used = info->st_mtim;
    }
    return false;
}

static stint_status remove_oldest(const struct st_prefixes *prefixes, const struct room *room) {
    char *path;
    ST_TRY(path_of(prefixes, room->oldest, &path));
    bool ok = unlink(path) == 0 || errno == ENOENT;
    free(path);
    return ok ? STINT_OK
              : st_fail(STINT_E_IO, "%s/%s: cannot be removed: %s", prefixes->folder, room->oldest,
                        strerror(errno));
}

// Removes files until so many bytes are left of the bound. pre: the lock is held
static stint_status make_room(const struct st_prefixes *prefixes, const struct about *wanted,
                              const struct st_sequence *held, uint64_t bytes) {
    for (;;) {
        struct room room = {.wanted = wanted, .held = held};
        if (!look(prefixes, count, &room))
            return st_fail(STINT_E_IO, "%s: cannot be read: %s", prefixes->folder, strerror(errno));
        if (!room.oldest[0] || room.bytes <= prefixes->max_bytes - bytes) return STINT_OK;
        ST_TRY(remove_oldest(prefixes, &room));
    }
}

stint_status st_prefixes_save(const struct st_prefixes *prefixes, const stint_session *session,
                              uint32_t sequence, uint64_t owner, bool *saved) {
    const struct st_sequence *held = &session->sequences[sequence];
    uint64_t bytes = st_session_saved_bytes(session, sequence);
    char name[NAME_MAX + 1], *path;
    *saved = false;
    if (held->length < ST_PREFIX_MIN || bytes > prefixes->max_bytes) return STINT_OK;
    struct about about = describe(prefixes, owner, held);
    write_name(&about, name);
    ST_TRY(path_of(prefixes, name, &path));
    int file = -1;
    stint_status status = STINT_OK;
    if (access(path, F_OK) == 0) {
        touch(path);
    } else if ((file = lock(prefixes)) < 0) {
        status = STINT_E_IO;
    } else {
        status = make_room(prefixes, &about, held, bytes);
        if (status == STINT_OK) status = stint_session_save(session, sequence, path);
        *saved = status == STINT_OK;
        close(file);
    }
    free(path);
    return status;
}
