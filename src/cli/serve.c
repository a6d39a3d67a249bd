// SPDX-License-Identifier: Apache-2.0
// stint serve: answers HTTP requests until it is stopped.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/fault.h"
#include "cli/file.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/sampling.h"
#include "cli/serve_models.h"
#include "server/server.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Sent by the thread that could not read the model.
#define FAULT_SIGNAL SIGUSR2

enum { KEY_MAX_BYTES = 4096, MAX_BODY_BYTES = 4 << 20 };

struct serve_options {
    struct st_cli_common common;
    const char *host, *key_file, *cors, *name, *slot_dir, *prefix_cache;
    uint32_t port, slots, queue, connections, per_address, timeout, drain, lame_duck, idle;
    uint32_t slot_files;
    uint64_t max_body, slot_bytes, prefix_bytes;
    bool no_key;
};

static const struct st_cli_option rows[] = {
    {.name = "host",
     .kind = ST_CLI_TEXT,
     .value = "NAME",
     .preset = "127.0.0.1",
     .help = "address to listen on; one that other machines can reach needs a key",
     .offset = offsetof(struct serve_options, host)},
    {.name = "port",
     .kind = ST_CLI_UINT,
     .value = "N",
     .preset = "8080",
     .max = 65535,
     .help = "port to listen on; 0: a free one; the address is printed",
     .offset = offsetof(struct serve_options, port)},
    {.name = "slots",
     .kind = ST_CLI_UINT,
     .value = "N",
     .preset = "4",
     .min = 1,
     .max = STINT_MAX_SEQUENCES,
     .help = "answers generated at once, each with its own context of --ctx tokens; up to 16 share "
             "one reading of the weights",
     .offset = offsetof(struct serve_options, slots)},
    {.name = "queue",
     .kind = ST_CLI_UINT,
     .value = "N",
     .preset = "32",
     .max = 4096,
     .help = "requests that may wait for a slot; further ones are refused (429)",
     .offset = offsetof(struct serve_options, queue)},
    {.name = "key-file",
     .kind = ST_CLI_TEXT,
     .value = "FILE",
     .help = "file whose first line is the API key that clients must send; without it the "
             "environment variable STINT_API_KEY, if set",
     .offset = offsetof(struct serve_options, key_file)},
    {.name = "no-key",
     .kind = ST_CLI_FLAG,
     .help = "allow requests without a key to everybody who can reach --host",
     .offset = offsetof(struct serve_options, no_key)},
    {.name = "cors",
     .kind = ST_CLI_TEXT,
     .value = "ORIGIN",
     .help = "also allow pages of this origin, e.g. https://app.example; *: all",
     .offset = offsetof(struct serve_options, cors)},
    {.name = "name",
     .kind = ST_CLI_TEXT,
     .value = "NAME",
     .help = "clients' name for the one model; without it the last part of MODEL",
     .offset = offsetof(struct serve_options, name)},
    {.name = "slot-dir",
     .kind = ST_CLI_TEXT,
     .value = "DIR",
     .help = "folder in which clients may save and restore slots; without it they cannot",
     .offset = offsetof(struct serve_options, slot_dir)},
    {.name = "slot-files",
     .kind = ST_CLI_UINT,
     .value = "N",
     .preset = "64",
     .min = 1,
     .max = 65536,
     .help = "most slots saved in --slot-dir; more are refused (409)",
     .offset = offsetof(struct serve_options, slot_files)},
    {.name = "slot-bytes",
     .kind = ST_CLI_SIZE,
     .value = "SIZE",
     .preset = "4G",
     .help = "most bytes of slots saved in --slot-dir",
     .offset = offsetof(struct serve_options, slot_bytes)},
    {.name = "prefix-cache",
     .kind = ST_CLI_TEXT,
     .value = "DIR",
     .help = "folder that keeps the caches of conversations that slots give up, for requests that "
             "begin like them, after a restart too",
     .offset = offsetof(struct serve_options, prefix_cache)},
    {.name = "prefix-bytes",
     .kind = ST_CLI_SIZE,
     .value = "SIZE",
     .preset = "4G",
     .help = "most bytes in --prefix-cache; the least recently used ones go first",
     .offset = offsetof(struct serve_options, prefix_bytes)},
    {.name = "max-body",
     .kind = ST_CLI_SIZE,
     .value = "SIZE",
     .preset = "4M",
     .help = "maximum size of a request; a longer one is refused (413)",
     .offset = offsetof(struct serve_options, max_body)},
    {.name = "connections",
     .kind = ST_CLI_UINT,
     .value = "N",
     .preset = "256",
     .min = 4,
     .max = 4096,
     .help = "connections at once; when all are in use, those whose requests are slowest to arrive "
             "are closed",
     .offset = offsetof(struct serve_options, connections)},
    {.name = "per-address",
     .kind = ST_CLI_AUTO,
     .value = "N",
     .preset = "auto",
     .max = 4096,
     .help = "connections from one address; 0: no limit; auto: a quarter of --connections, and no "
             "limit where --host is this machine only",
     .offset = offsetof(struct serve_options, per_address)},
    {.name = "timeout",
     .kind = ST_CLI_UINT,
     .value = "S",
     .preset = "30",
     .min = 1,
     .max = 3600,
     .help = "maximum seconds for a request to arrive, and for a client to read",
     .offset = offsetof(struct serve_options, timeout)},
    {.name = "drain",
     .kind = ST_CLI_UINT,
     .value = "S",
     .preset = "30",
     .max = 3600,
     .help = "seconds for running answers to finish after Ctrl-C or SIGTERM",
     .offset = offsetof(struct serve_options, drain)},
    {.name = "lame-duck",
     .kind = ST_CLI_UINT,
     .value = "S",
     .preset = "0",
     .max = 3600,
     .help = "seconds before that in which /health says 503 and requests are still taken, for a "
             "load balancer to notice",
     .offset = offsetof(struct serve_options, lame_duck)},
    {.name = "idle",
     .kind = ST_CLI_UINT,
     .value = "S",
     .preset = "0",
     .max = 1 << 30,
     .help = "seconds without a request until a model is unloaded; 0: it stays, unless --memory "
             "is needed for another",
     .offset = offsetof(struct serve_options, idle)},
    {.name = NULL}};

// Keys that an Authorization header can carry.
static bool is_key(const char *key) {
    size_t n = strlen(key);
    for (size_t i = 0; i < n; i++)
        if (key[i] < ' ' || key[i] > '~') return false;
    return n > 0 && key[0] != ' ' && key[n - 1] != ' ';
}

// Puts the key into *key, malloc'ed, or NULL if there is none; false with the error printed.
static bool read_key(const struct st_cli_command *command, const struct serve_options *options,
                     char **key) {
    const char *from_environment = getenv("STINT_API_KEY");
    size_t n = 0;
    *key = NULL;
    if (options->key_file == NULL && from_environment == NULL) return true;
    *key = options->key_file != NULL
               ? st_cli_read_all(command->name, options->key_file, KEY_MAX_BYTES, &n)
               : strdup(from_environment);
    if (*key == NULL) {
        if (options->key_file == NULL) st_cli_error(command->name, "not enough memory");
        return false;
    }
    bool whole = options->key_file == NULL || strlen(*key) == n; // a NUL would cut it short
    (*key)[strcspn(*key, "\r\n")] = 0;
    if (whole && is_key(*key)) return true;
    st_cli_error(command->name,
                 "%s: the key must be one line of printable ASCII characters, without blanks at "
                 "its ends",
                 options->key_file != NULL ? options->key_file : "STINT_API_KEY");
    free(*key);
    *key = NULL;
    return false;
}

static bool check_folder(const struct st_cli_command *command, const char *option,
                         const char *path) {
    struct stat folder;
    if (path == NULL || (stat(path, &folder) == 0 && S_ISDIR(folder.st_mode))) return true;
    st_cli_error(command->name, "%s: is not a folder; --%s needs one", path, option);
    return false;
}

static bool check(const struct st_cli_command *command, const struct serve_options *options,
                  const char *key) {
    if (!check_folder(command, "slot-dir", options->slot_dir) ||
        !check_folder(command, "prefix-cache", options->prefix_cache))
        return false;
    if (key != NULL || options->no_key || st_server_is_local(options->host)) return true;
    st_cli_error(command->name,
                 "--host %s is open to other machines: set a key with --key-file or STINT_API_KEY, "
                 "or allow everybody with --no-key",
                 options->host);
    return false;
}

static void print_line(void *context, const char *line) {
    st_cli_error(context, "%s", line);
}

static sigset_t ending_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, FAULT_SIGNAL);
    return set;
}

static void end_faulty(struct st_server *server) {
    st_server_tell_all(server, st_cli_fault_text);
    st_cli_fault_end();
}

// Waits for the first signal. A second one then ends the program in the default way. Where the
// model cannot be read any more, clients are told, and the program ends.
static void wait_for_signal(const sigset_t *signals, struct st_server *server, uint32_t lame_duck) {
    int number;
    while (sigwait(signals, &number) != 0) continue;
    if (number == FAULT_SIGNAL) end_faulty(server);
    st_server_leave(server);
    const struct timespec patience = {.tv_sec = lame_duck};
    if (lame_duck > 0 && sigtimedwait(signals, NULL, &patience) == FAULT_SIGNAL) end_faulty(server);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, signals, NULL);
}

static uint32_t per_address(const struct serve_options *options) {
    if (options->per_address != UINT32_MAX) return options->per_address;
    return st_server_is_local(options->host) ? 0 : options->connections / 4;
}

// What the loader needs; models are opened from other threads, too.
struct loading {
    const struct st_cli_command *command;
    const struct st_cli_common *common;
};

static stint_status open_model(void *context, const char *path, stint_model **model,
                               stint_sampling *sampling) {
    const struct loading *loading = context;
    struct st_cli_progress progress = {0};
    stint_model_options options = st_cli_model_options(loading->common, &progress);
    stint_status status = stint_model_open(path, &options, model);
    st_cli_progress_end(&progress);
    if (status != STINT_OK) return status;
    st_cli_warn_of_context(loading->command, loading->common, *model);
    st_cli_tell_left_out(loading->command, *model);
    *sampling = st_cli_sampling(loading->common, *model);
    return STINT_OK;
}

static void lose_model(void *context) {
    (void)context;
    st_cli_fault_stand();
}

static void close_model(void *context, stint_model *model) {
    (void)context;
    stint_model_close(model);
}

static stint_status open_server(const struct st_cli_command *command,
                                const struct serve_options *options,
                                const struct st_cli_served_models *models, struct loading *loading,
                                const char *key, struct st_server **server) {
    stint_session_options session = st_cli_session_options(&options->common);
    struct st_server_options server_options = {
        .models = models->items,
        .n_models = models->count,
        .idle = options->idle,
        .loader = {.open = open_model,
                   .close = close_model,
                   .lost = lose_model,
                   .context = loading},
        .session = &session,
        .host = options->host,
        .port = (uint16_t)options->port,
        .key = key,
        .cors = options->cors,
        .slot_dir = options->slot_dir,
        .slot_files = options->slot_files,
        .slot_bytes = options->slot_bytes,
        .prefix_dir = options->prefix_cache,
        .prefix_bytes = options->prefix_bytes,
        .n_slots = options->slots,
        .n_queue = options->queue,
        .n_connections = options->connections,
        .n_per_address = per_address(options),
        .timeout = options->timeout,
        .max_body = options->max_body};
    if (options->common.verbose) {
        server_options.log = print_line;
        server_options.log_context = (void *)(uintptr_t)command->name;
    }
    return st_server_open(&server_options, server);
}

static bool say_address(const struct st_cli_served_models *models, const struct st_server *server) {
    char line[256], several[32];
    snprintf(several, sizeof several, "%zu models", models->count);
    int n =
        snprintf(line, sizeof line, "serving %s at %s\n",
                 models->count == 1 ? models->items[0].name : several, st_server_address(server));
    return n > 0 && st_cli_write(line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static bool serve(const struct st_cli_command *command, const struct serve_options *options,
                  const struct st_cli_served_models *models, const char *key) {
    struct loading loading = {command, &options->common};
    struct st_server *server = NULL;
    st_cli_log_to_stderr(command, options->common.verbose);
    st_cli_fault_watch(command->name, models->count == 1 ? models->items[0].path : "a model");
    // Blocked before the server's threads start, which inherit it, so only this thread waits.
    sigset_t signals = ending_signals();
    sigprocmask(SIG_BLOCK, &signals, NULL);
    if (open_server(command, options, models, &loading, key, &server) != STINT_OK) {
        st_cli_failed(command);
        return false;
    }
    st_cli_fault_signal(FAULT_SIGNAL);
    bool ok = say_address(models, server);
    if (ok) wait_for_signal(&signals, server, options->lame_duck);
    if (!st_server_close(server, options->drain))
        st_cli_error(command->name, "answers that still ran after %u seconds were aborted",
                     options->drain);
    return ok;
}

static int run(const struct st_cli_command *command, void *target) {
    const struct serve_options *options = target;
    char *key;
    if (!read_key(command, options, &key)) return ST_CLI_FAILED;
    struct st_cli_served_models models = {0};
    bool ok = check(command, options, key) &&
              st_cli_served_models(command, &options->common, options->name, &models) &&
              serve(command, options, &models, key);
    st_cli_served_models_free(&models);
    free(key);
    return ok ? ST_CLI_DONE : ST_CLI_FAILED;
}

const struct st_cli_command st_cli_serve_command = {
    .name = "serve",
    .summary = "answer OpenAI's clients and browsers over HTTP",
    .operand = "MODEL...",
    .about =
        "Serves the API of OpenAI's clients (/v1/chat/completions, /v1/completions, "
        "/v1/models) and shows a page with a chat at /. Prints its address when it is ready, "
        "and with --verbose a line per request. Several answers are generated at once; "
        "a common beginning of prompts is computed once. Of several models, or a folder of them, "
        "each is loaded when a request names it. Ctrl-C or SIGTERM ends the server when running "
        "answers have finished, a second one at once. docs/SERVER.md has the details.",
    .example = "stint serve models/novels-10m --port 8080 --slots 4",
    .common = ST_CLI_COMMON_SESSION | ST_CLI_COMMON_DRAFTS | ST_CLI_COMMON_NESTED |
              ST_CLI_COMMON_QUALITY | ST_CLI_COMMON_SCHEDULE,
    .samples = ST_CLI_SAMPLES_AS_THE_MODEL,
    .options = rows,
    .options_bytes = sizeof(struct serve_options),
    .run = run};
