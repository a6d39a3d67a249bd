// SPDX-License-Identifier: Apache-2.0
// A model in memory, with everything that requests to it need: one request scheduler, its chat
// format, its defaults. After opening it is immutable, except for the scheduler.
#ifndef ST_SERVER_SERVED_H
#define ST_SERVER_SERVED_H

#include "chat/chat.h"
#include "server/scheduler/scheduler.h"
#include "server/server.h"

struct st_models;

struct st_served {
    struct st_models *models; // the registry that it belongs to
    size_t index;             // in there
    const char *name;         // clients' name for it
    stint_model *model;
    const struct stint_tokenizer *tokenizer;
    struct st_scheduler *scheduler;
    struct st_chat *chat;
    stint_sampling sampling; // of requests that do not say
    size_t context;          // tokens per slot
    uint32_t n_slots;
    char fingerprint[40]; // of everything besides the request that determines an answer
};

// Opens the file or folder. The errors of models, and STINT_E_UNSUPPORTED without a tokenizer.
stint_status st_served_open(struct st_served *served, const struct st_server_loader *loader,
                            const char *path);
// The bytes that it takes with these options, and at most their bound. STINT_E_LIMIT: even that is
// too little. pre: the options have a bound, and the model was opened for one.
stint_status st_served_bytes(const struct st_served *served, const stint_session_options *options,
                             uint64_t *bytes);
// Starts its scheduler, with options->n_sequences slots. Of prefixes the folder, if any, and the
// bound are given.
stint_status st_served_start(struct st_served *served, const struct st_server_loader *loader,
                             const stint_session_options *options, uint32_t n_queue,
                             const struct st_prefixes *prefixes);
// Whatever of it is open.
void st_served_close(struct st_served *served, const struct st_server_loader *loader);

#endif
