// SPDX-License-Identifier: Apache-2.0
#include "hub/fetch.h"

#include "base/map.h"
#include "hub/blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { MAX_IDLE_ATTEMPTS = 4, FIRST_WAIT_MS = 250, TAG_BYTES = 256, BLOCK = 1 << 16 };

struct transfer {
    struct st_hub_web *web;
    const struct st_hub_fetch *fetch;
    char *part, *tag_path; // PATH.part, and beside it the ETag of what is in it
    int file;
    struct sha256_ctx hash;
    uint64_t have, total; // bytes in the file; of the whole, 0: not known
    // Of the answer that is read:
    char tag[TAG_BYTES];
    uint64_t begin, promised; // of Content-Range; Content-Length, UINT64_MAX: not said
    bool started, other_size;
    int error; // errno of the file
};

// The file's size is known, by the caller or by an answer.
static bool known(const struct transfer *t) {
    return t->total > 0;
}

static stint_status file_failed(const struct transfer *t, int error) {
    return st_fail(STINT_E_IO, "%s: %s", t->part, strerror(error));
}

// Starts the file over.
static bool restart(struct transfer *t) {
    sha256_init(&t->hash);
    t->have = 0;
    if (ftruncate(t->file, 0) == 0 && lseek(t->file, 0, SEEK_SET) == 0) return true;
    t->error = errno;
    return false;
}

static void value_of(const char *line, size_t n, const char *name, char *value, size_t size) {
    size_t m = strlen(name);
    if (n <= m || strncasecmp(line, name, m) != 0) return;
    snprintf(value, size, "%.*s", (int)(n - m), line + m);
    value[strcspn(value, "\r\n")] = 0;
    memmove(value, value + strspn(value, " "), strlen(value + strspn(value, " ")) + 1);
}

static size_t take_header(char *line, size_t size, size_t n, void *context) {
    struct transfer *t = context;
    char value[TAG_BYTES] = "";
    n *= size;
    if (n > 5 && strncmp(line, "HTTP/", 5) == 0) { // of a redirection, or of what it leads to
        t->begin = 0;
        t->promised = UINT64_MAX;
        *t->tag = 0;
    }
    value_of(line, n, "etag:", t->tag, sizeof t->tag);
    value_of(line, n, "content-length:", value, sizeof value);
    if (*value != 0) t->promised = strtoull(value, NULL, 10);
    *value = 0;
    value_of(line, n, "content-range:", value, sizeof value);
    if (strncmp(value, "bytes ", 6) == 0) t->begin = strtoull(value + 6, NULL, 10);
    return n;
}

// Keeps the ETag, so that a later process can continue a file without a checksum.
static void write_tag(const struct transfer *t) {
    unlink(t->tag_path);
    if (*t->fetch->sha256 != 0 || t->tag[0] != '"') return; // a weak one does not tell bytes
    FILE *file = fopen(t->tag_path, "w");
    if (file == NULL) return;
    fputs(t->tag, file);
    fclose(file);
}

// Before the first byte of a body: where does it belong? False ends the transfer.
static bool start(struct transfer *t) {
    long status = 0;
    curl_easy_getinfo(t->web->curl, CURLINFO_RESPONSE_CODE, &status);
    t->started = true;
    if (status != 206 && t->have > 0 && !restart(t)) return false; // the whole file once more
    if (status == 206 && t->begin != t->have) {
        t->error = EPROTO;
        return false;
    }
    uint64_t size = t->promised == UINT64_MAX ? 0 : t->have + t->promised;
    t->other_size = t->fetch->bytes > 0 && size > 0 && size != t->fetch->bytes;
    if (t->fetch->bytes == 0) t->total = size;
    if (t->have == 0) write_tag(t);
    return !t->other_size;
}

static bool write_all(struct transfer *t, const char *data, size_t n) {
    while (n > 0) {
        ssize_t done = write(t->file, data, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            t->error = done < 0 ? errno : EIO;
            return false;
        }
        sha256_update(&t->hash, (size_t)done, (const uint8_t *)data);
        t->have += (uint64_t)done;
        data += done;
        n -= (size_t)done;
    }
    return true;
}

static bool append(void *context, const char *data, size_t n) {
    struct transfer *t = context;
    if (!write_all(t, data, n)) return false;
    if (t->fetch->progress != NULL)
        t->fetch->progress(t->fetch->progress_context, "fetching", t->have, t->total);
    return true;
}

static size_t take_data(char *data, size_t size, size_t n, void *context) {
    struct transfer *t = context;
    long status = 0;
    curl_easy_getinfo(t->web->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200 || status > 299) return size * n; // the text of an error
    if (!t->started && !start(t)) return 0;
    t->other_size = known(t) && t->have + size * n > t->total;
    return !t->other_size && append(t, data, size * n) ? size * n : 0;
}

static CURLcode request(struct transfer *t, long *status) {
    CURL *curl = t->web->curl;
    char range[32], condition[TAG_BYTES + 16], tag[TAG_BYTES] = "";
    struct curl_slist *headers = NULL;
    snprintf(range, sizeof range, "%llu-", (unsigned long long)t->have);
    if (t->have > 0) curl_easy_setopt(curl, CURLOPT_RANGE, range);
    if (t->have > 0 && *t->fetch->sha256 == 0) {
        FILE *file = fopen(t->tag_path, "r");
        if (file != NULL && fgets(tag, sizeof tag, file) == NULL) *tag = 0;
        if (file != NULL) fclose(file);
        snprintf(condition, sizeof condition, "If-Range: %s", tag);
        headers = curl_slist_append(NULL, condition);
    }
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_data);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    t->started = false;
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    curl_slist_free_all(headers);
    return code;
}

// Whether another attempt may help.
static bool transient(CURLcode code, long status) {
    if (code == CURLE_OK) return status >= 500 || status == 429 || status == 408;
    return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING ||
           code == CURLE_SEND_ERROR || code == CURLE_OPERATION_TIMEDOUT || code == CURLE_HTTP2 ||
           code == CURLE_HTTP2_STREAM;
}

static bool complete(const struct transfer *t, CURLcode code, long status) {
    return code == CURLE_OK && status >= 200 && status <= 299 && (!known(t) || t->have == t->total);
}

// What ended a request for good, on our side of it.
static stint_status own_failure(const struct transfer *t) {
    if (t->error == EPROTO)
        return st_fail(STINT_E_IO, "%s: sent another part of the file than asked for",
                       t->fetch->url);
    if (t->error != 0) return file_failed(t, t->error);
    if (t->other_size)
        return st_fail(STINT_E_FORMAT, "%s: has not the %llu bytes that it should have",
                       t->fetch->url, (unsigned long long)t->total);
    return STINT_OK;
}

static void pause_before(unsigned attempt) {
    long ms = (long)FIRST_WAIT_MS << attempt;
    struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&wait, NULL);
}

// Over several connections as far as that goes; what is left is for one. Without a checksum nobody
// would notice a file that changes meanwhile.
static stint_status receive_blocks(struct transfer *t) {
    uint64_t before = t->have;
    for (bool more = *t->fetch->sha256 != 0; more; more = t->have > before) {
        before = t->have;
        st_hub_blocks_fetch(&(struct st_hub_blocks){.web = t->web,
                                                    .url = t->fetch->url,
                                                    .begin = t->have,
                                                    .end = t->fetch->bytes,
                                                    .take = append,
                                                    .context = t});
        ST_TRY(own_failure(t));
    }
    return STINT_OK;
}

static stint_status receive(struct transfer *t) {
    ST_TRY(receive_blocks(t));
    for (unsigned idle = 0;;) {
        if (t->fetch->bytes > 0 && t->have == t->fetch->bytes) return STINT_OK;
        uint64_t before = t->have;
        long status = 0;
        ST_TRY(st_hub_web_begin(t->web, t->fetch->url));
        CURLcode code = request(t, &status);
        ST_TRY(own_failure(t));
        if (complete(t, code, status)) return STINT_OK;
        if (code == CURLE_OK && status == 416 && before > 0) { // what we have is not of this file
            if (!restart(t)) return file_failed(t, t->error);
        }
        bool again = before > t->have; // from its beginning
        bool cut = code == CURLE_OK && status >= 200 && status <= 299;
        idle = t->have > before ? 0 : idle + 1;
        if ((!cut && !again && !transient(code, status)) || idle == MAX_IDLE_ATTEMPTS)
            return st_hub_web_check(t->web, t->fetch->url, cut ? CURLE_PARTIAL_FILE : code, status);
        if (idle > 0) pause_before(idle - 1);
    }
}

// Continues what an earlier fetch left: reads it into the hash.
static stint_status resume(struct transfer *t) {
    static const size_t block = BLOCK;
    uint8_t *data = malloc(block);
    if (data == NULL) return st_fail(STINT_E_NOMEM, "not enough memory");
    ssize_t n;
    while ((n = read(t->file, data, block)) > 0) {
        sha256_update(&t->hash, (size_t)n, data);
        t->have += (uint64_t)n;
    }
    int error = errno;
    free(data);
    if (n < 0) return file_failed(t, error);
    bool usable = *t->fetch->sha256 != 0 || access(t->tag_path, F_OK) == 0;
    bool longer = t->fetch->bytes > 0 && t->have > t->fetch->bytes;
    if ((!usable || longer) && !restart(t)) return file_failed(t, t->error);
    return STINT_OK;
}

static stint_status check_space(const struct transfer *t) {
    struct statvfs info;
    if (t->fetch->bytes == 0 || fstatvfs(t->file, &info) != 0) return STINT_OK;
    uint64_t free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    uint64_t missing = t->fetch->bytes - t->have;
    if (missing <= free_bytes) return STINT_OK;
    return st_fail(STINT_E_IO, "%s: needs %llu MB more, and %llu MB are free", t->part,
                   (unsigned long long)(missing / 1000000),
                   (unsigned long long)(free_bytes / 1000000));
}

static bool checksum_is_right(struct transfer *t) {
    uint8_t digest[SHA256_DIGEST_SIZE];
    char text[2 * SHA256_DIGEST_SIZE + 1];
    sha256_digest(&t->hash, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return *t->fetch->sha256 == 0 || strcmp(text, t->fetch->sha256) == 0;
}

// A page in place of the file has another beginning.
static bool beginning_is_right(const struct transfer *t) {
    static const char magic[] = "GGUF";
    char begin[sizeof magic] = "";
    size_t n = strlen(t->fetch->path);
    if (n < 5 || strcmp(t->fetch->path + n - 5, ".gguf") != 0) return true;
    return pread(t->file, begin, strlen(magic), 0) == (ssize_t)strlen(magic) &&
           memcmp(begin, magic, strlen(magic)) == 0;
}

static stint_status verify(struct transfer *t) {
    const char *why = NULL;
    if (!checksum_is_right(t))
        why = "has another SHA-256 than it should have; it was damaged on its way or replaced";
    else if (!beginning_is_right(t))
        why = "is not a GGUF file";
    if (why == NULL) return STINT_OK;
    if (!restart(t)) return file_failed(t, t->error);
    return st_fail(STINT_E_FORMAT, "%s: %s", t->fetch->url, why);
}

static stint_status give_name(struct transfer *t) {
    char *folder = strdup(t->fetch->path);
    if (folder == NULL) return st_fail(STINT_E_NOMEM, "not enough memory");
    bool ok = fsync(t->file) == 0 && rename(t->part, t->fetch->path) == 0;
    int error = errno;
    int directory = ok ? open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (directory >= 0) {
        fsync(directory);
        close(directory);
    }
    free(folder);
    if (!ok) return file_failed(t, error);
    unlink(t->tag_path);
    return STINT_OK;
}

static stint_status transfer(struct transfer *t) {
    ST_TRY(resume(t));
    bool resumed = t->have > 0;
    ST_TRY(check_space(t));
    ST_TRY(receive(t));
    stint_status status = verify(t);
    if (status == STINT_E_FORMAT && resumed) { // its beginning may be of another file
        ST_TRY(receive(t));
        status = verify(t);
    }
    return status == STINT_OK ? give_name(t) : status;
}

// Opens and locks the part: two processes must not write it.
static stint_status open_part(struct transfer *t) {
    struct stat opened, named;
    t->file = open(t->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (t->file < 0) return file_failed(t, errno);
    bool alone = flock(t->file, LOCK_EX | LOCK_NB) == 0 && fstat(t->file, &opened) == 0 &&
                 stat(t->part, &named) == 0 && opened.st_ino == named.st_ino;
    return alone ? STINT_OK : st_fail(STINT_E_IO, "%s: another process is fetching this", t->part);
}

stint_status st_hub_fetch(struct st_hub_web *web, const struct st_hub_fetch *fetch) {
    struct transfer t = {.web = web, .fetch = fetch, .file = -1, .total = fetch->bytes};
    sha256_init(&t.hash);
    stint_status status = STINT_OK;
    if (asprintf(&t.part, "%s.part", fetch->path) < 0) t.part = NULL;
    if (t.part == NULL || asprintf(&t.tag_path, "%s.part.etag", fetch->path) < 0)
        status = st_fail(STINT_E_NOMEM, "not enough memory");
    if (status == STINT_OK) status = open_part(&t);
    bool locked = status == STINT_OK;
    if (locked) status = transfer(&t);
    if (locked && status != STINT_OK && t.have == 0) unlink(t.part);
    if (t.file >= 0) close(t.file);
    if (status == STINT_OK) st_map_renew(fetch->path, fetch->progress, fetch->progress_context);
    free(t.part);
    free(t.tag_path);
    return status;
}
