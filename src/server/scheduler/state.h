// SPDX-License-Identifier: Apache-2.0
// What scheduler.c and disk.c share. `lock` guards the queue, the states of the slots, the members
// of jobs that other threads use, and the counts. Sequences, and jobs that have a slot, belong to
// the thread that computes, those of a slot that is TAKEN to whoever took it.
#ifndef ST_SERVER_SCHEDULER_STATE_H
#define ST_SERVER_SCHEDULER_STATE_H

#include "server/scheduler/scheduler.h"
#include "server/scheduler/slots.h"

#include <pthread.h>

struct st_scheduler {
    struct st_slots slots;
    uint32_t n_queue;
    void (*lost)(void *context);
    void *context;
    pthread_t thread;
    bool running; // the thread was started
    pthread_mutex_t lock;
    pthread_cond_t work, idle; // wake the thread; wake whoever waits until nothing is left
    struct st_job *first, *last;
    uint64_t n_tickets;
    bool closing, draining;
    bool ending;              // an end event is under way; its slot is free already
    int32_t computing;        // the slot whose prompt is being computed; -1: none
    struct st_slot_end *ends; // [n slots]
    struct st_scheduler_stats stats;
    struct st_record record; // of the last request that ended
    // Where prefixes are kept on disk: a thread, its work, and what wakes it.
    pthread_t disk;
    bool disk_running, disk_ends;
    pthread_cond_t disk_work;
    struct st_job *fetching; // the job for whose slot it works; NULL: none
    struct st_slot_choice fetched;
};

// disk.c. With the lock held: lends the job's slot to the thread for files (st_slots_fetch); the
// job comes back to the front of the queue. pre: nothing is being fetched
void st_scheduler_fetch(struct st_scheduler *scheduler, struct st_job *job,
                        const struct st_slot_choice *choice);
// Saves what the slots hold. pre: the thread that computes has ended
void st_scheduler_disk_close(struct st_scheduler *scheduler);

#endif
