// SPDX-License-Identifier: Apache-2.0
// The models that a server serves. A model is loaded when a request needs it, and stays as long as
// requests hold it. One thread loads and unloads: a model that nobody has held for a while, and,
// where memory is bounded, the least recently used ones until the next one fits. A request that
// needs a load does not block a thread: it is woken when the load has ended. If every loaded model
// is busy, the least recently used one takes no more requests until it has been unloaded, so that
// nobody waits for good.
#ifndef ST_SERVER_MODELS_H
#define ST_SERVER_MODELS_H

#include "server/models/served.h"

struct st_models; // all calls are thread-safe

struct st_models_options {
    const struct st_server_model *list; // [n] names and paths; copied
    size_t n;
    struct st_server_loader loader;
    const stint_session_options *session; // copied; its texts live longer. `memory` is the bound of
                                          // all models together
    struct st_prefixes prefixes;          // see st_served_start
    uint32_t n_queue;                     // of each scheduler
    uint32_t idle;                        // seconds until a model is unloaded; 0: it stays
};

// A single model is loaded at once, several when they are needed.
stint_status st_models_open(const struct st_models_options *options, struct st_models **models);
// Loads no more models: whoever waits is told so, and the schedulers take no more requests.
void st_models_stop(struct st_models *models); // accepts NULL
// pre: no model is held. Accepts NULL.
void st_models_close(struct st_models *models);

size_t st_models_count(const struct st_models *models);
// The model of this name; its index, or SIZE_MAX. ":latest" behind a name changes nothing.
size_t st_models_find(const struct st_models *models, const char *name);
const char *st_models_name(const struct st_models *models, size_t i);

// Somebody who waits for a model. After wake() `served` is held; or it is NULL, and status and text
// say why.
struct st_models_waiter {
    struct st_models_waiter *next;
    void (*wake)(void *context);
    void *context;
    const struct st_served *served;
    stint_status status;
    char text[256];
};

// Holds a model if it is loaded; NULL: it is not.
const struct st_served *st_models_hold(struct st_models *models, size_t i);
// Loads it if need be. The waiter is woken once the model is loaded or cannot be, from any thread,
// which may be this one.
void st_models_wait(struct st_models *models, size_t i, struct st_models_waiter *waiter);
// Holds a model once more that somebody holds.
void st_models_hold_again(const struct st_served *served);
void st_models_release(const struct st_served *served); // accepts NULL
// st_scheduler_last() of a model, or with SIZE_MAX of the loaded one that was used last; null where
// it is not loaded. Neither this nor a view counts as a use.
json_t *st_models_last(struct st_models *models, size_t i);

enum st_model_state { ST_MODEL_OUT, ST_MODEL_LOADING, ST_MODEL_READY, ST_MODEL_LEAVING };

// A model as clients see it.
struct st_model_view {
    const char *name;
    enum st_model_state state;
    uint64_t file_bytes;
    uint64_t n_loads;
    // Zero and "" until it has been loaded once. Of the texts there are the architecture and the
    // type of weights; they live as long as the registry.
    stint_model_info info;
    size_t context; // tokens per slot
    bool reasons;   // it may write reasoning before its answer
    // Counters since the server started; the rest is zero unless it is loaded.
    struct st_scheduler_stats stats;
};
void st_models_view(struct st_models *models, size_t i, struct st_model_view *view);

// "unloaded", "loading", "loaded" or "unloading".
const char *st_model_state_name(enum st_model_state state);

#endif
