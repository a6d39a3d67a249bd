// SPDX-License-Identifier: Apache-2.0
// Bytes as a saved session if they hold one, else as a model, a package or a GGUF file, and through
// a running session in both cases: what opens computes, or fails with a status; a session that
// refused a file holds what it held before. In libFuzzer's build hashes are not checked.
#include "stint.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_TOKENS = 4, CONTEXT = 24 };
static const int32_t tokens[N_TOKENS] = {1, 2, 3, 4};
static const stint_session_options options = {.size = sizeof options,
                                              .n_context = CONTEXT,
                                              .n_sequences = 2,
                                              .n_threads = 1,
                                              .chunk_len = 16};

// Steps of a session with something in sequence 0; only numbers that are none may stop them.
static void compute(stint_session *session) {
    const uint32_t sequences[2] = {0, 1};
    size_t length = stint_session_length(session, 0);
    if (length + N_TOKENS <= CONTEXT) {
        stint_status status = stint_session_eval(session, 0, tokens, N_TOKENS, false, NULL);
        if (stint_session_length(session, 0) != length + (status == STINT_OK ? N_TOKENS : 0))
            abort();
    }
    stint_session_step(session, sequences, tokens, 2, NULL);
    if (stint_session_truncate(session, 0, 0) != STINT_OK) abort();
    if (stint_session_length(session, 0) != 0) abort();
}

// Of a model with attention alone, and of those with recurrent state.
enum { N_OWN = 3 };

static stint_session *own_session(size_t i) {
    static const char *const paths[N_OWN] = {
        STINT_SOURCE_DIR "/tests/golden/models/llama-dynamic",
        STINT_SOURCE_DIR "/tests/golden/models/lfm2",
        STINT_SOURCE_DIR "/tests/golden/models/qwen35"};
    static stint_model *models[N_OWN];
    static stint_session *sessions[N_OWN];
    const stint_model_options all = {.size = sizeof all};
    if (sessions[i]) return sessions[i];
    if (stint_model_open(paths[i], &all, &models[i]) ||
        stint_session_open(models[i], &options, &sessions[i]))
        abort();
    return sessions[i];
}

static void load(stint_session *session, const char *path) {
    if (stint_session_truncate(session, 0, 0) || stint_session_truncate(session, 1, 0) ||
        stint_session_eval(session, 0, tokens, N_TOKENS, false, NULL))
        abort();
    if (stint_session_load(session, 0, path) != STINT_OK) {
        const int32_t *held = stint_session_tokens(session, 0);
        if (stint_session_length(session, 0) != N_TOKENS || memcmp(held, tokens, sizeof tokens))
            abort();
    }
    compute(session);
}

static void open_model(const char *path) {
    stint_model *model = NULL;
    stint_session *session = NULL;
    const stint_model_options model_options = {.size = sizeof model_options};
    if (stint_model_open(path, &model_options, &model) != STINT_OK) return;
    if (stint_session_open(model, &options, &session) == STINT_OK) compute(session);
    stint_session_close(session);
    stint_model_close(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || (size && write(file, data, size) != (ssize_t)size)) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    bool saved = size && memmem(data, size, "session.json", 12) != NULL;
    for (size_t i = 0; i < N_OWN && saved; i++) load(own_session(i), path);
    if (!saved) open_model(path);
    close(file);
    return 0;
}
