// SPDX-License-Identifier: Apache-2.0
// Slots on disk: those that clients save by name, and the thread that saves what slots give up and
// loads what prompts begin with, while other slots go on computing.
#include "base/log.h"
#include "server/scheduler/state.h"

// ---- By name

static stint_status take_slot(struct st_scheduler *s, uint32_t slot) {
    stint_status status = STINT_OK;
    pthread_mutex_lock(&s->lock);
    if (slot >= s->slots.n)
        status = st_fail(STINT_E_ARG, "slot %u: there are %u", slot, s->slots.n);
    else if (s->slots.slots[slot].state != ST_SLOT_FREE)
        status =
            st_fail(STINT_E_ARG, "slot %u is busy: try again when its request has ended", slot);
    else
        s->slots.slots[slot].state = ST_SLOT_TAKEN;
    pthread_mutex_unlock(&s->lock);
    return status;
}

static void give_slot(struct st_scheduler *s, uint32_t slot) {
    pthread_mutex_lock(&s->lock);
    s->slots.slots[slot].state = ST_SLOT_FREE;
    pthread_cond_signal(&s->work);
    pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
}

static stint_status save(const struct st_scheduler *s, uint32_t slot, uint64_t owner,
                         uint64_t max_bytes, const char *path) {
    const struct stint_session *session = s->slots.session;
    if (s->slots.slots[slot].owner != owner)
        return st_fail(STINT_E_ARG, "there are no tokens to save");
    uint64_t bytes = st_session_saved_bytes(session, slot);
    if (bytes > max_bytes)
        return st_fail(STINT_E_LIMIT, "the slot takes %llu bytes, and there is room for %llu",
                       (unsigned long long)bytes, (unsigned long long)max_bytes);
    return stint_session_save(session, slot, path);
}

stint_status st_scheduler_save(struct st_scheduler *s, uint32_t slot, uint64_t owner,
                               uint64_t max_bytes, const char *path, size_t *n_tokens) {
    ST_TRY(take_slot(s, slot));
    stint_status status = save(s, slot, owner, max_bytes, path);
    if (status == STINT_OK) *n_tokens = s->slots.session->sequences[slot].length;
    give_slot(s, slot);
    return status;
}

stint_status st_scheduler_restore(struct st_scheduler *s, uint32_t slot, uint64_t owner,
                                  const char *path, size_t *n_tokens) {
    ST_TRY(take_slot(s, slot));
    stint_status status = stint_session_load(s->slots.session, slot, path);
    if (status == STINT_OK) s->slots.slots[slot].owner = owner;
    if (status == STINT_OK) *n_tokens = s->slots.session->sequences[slot].length;
    give_slot(s, slot);
    return status;
}

// ---- Prefixes

void st_scheduler_fetch(struct st_scheduler *s, struct st_job *job,
                        const struct st_slot_choice *choice) {
    s->slots.slots[choice->slot].state = ST_SLOT_TAKEN;
    s->slots.slots[choice->slot].job = job; // so that it can be canceled
    s->fetching = job;
    s->fetched = *choice;
    pthread_cond_signal(&s->disk_work);
}

// With the lock held.
static void give_back(struct st_scheduler *s) {
    struct st_job *job = s->fetching;
    s->slots.slots[s->fetched.slot].state = ST_SLOT_FREE;
    s->slots.slots[s->fetched.slot].job = NULL;
    s->fetching = NULL;
    job->fetched = true;
    job->next = s->first;
    s->first = job;
    if (!s->last) s->last = job;
    s->stats.queued++;
    pthread_cond_signal(&s->work);
    pthread_cond_broadcast(&s->idle);
}

static void *run_disk(void *context) {
    struct st_scheduler *s = context;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->fetching && !s->disk_ends) pthread_cond_wait(&s->disk_work, &s->lock);
        if (!s->fetching) break;
        bool saved, loaded;
        pthread_mutex_unlock(&s->lock);
        st_slots_fetch(&s->slots, &s->fetched, s->fetching, &saved, &loaded);
        pthread_mutex_lock(&s->lock);
        s->stats.prefix_saves += saved;
        s->stats.prefix_loads += loaded;
        give_back(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

stint_status st_scheduler_keep_prefixes(struct st_scheduler *s,
                                        const struct st_prefixes *prefixes) {
    s->slots.prefixes = *prefixes;
    s->slots.prefixes.n_context = s->slots.session->n_context;
    s->disk_running = pthread_create(&s->disk, NULL, run_disk, s) == 0;
    return s->disk_running ? STINT_OK
                           : st_fail(STINT_E_NOMEM, "no memory for a thread that saves prefixes");
}

void st_scheduler_disk_close(struct st_scheduler *s) {
    if (!s->disk_running) return;
    pthread_mutex_lock(&s->lock);
    s->disk_ends = true;
    pthread_cond_signal(&s->disk_work);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->disk, NULL);
    for (uint32_t i = 0; i < s->slots.n; i++) st_slots_save_prefix(&s->slots, i);
}
