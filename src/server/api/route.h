// SPDX-License-Identifier: Apache-2.0
// Which handler answers which method and path. Paths are compared with the table and lead nowhere
// else: no name from a request reaches the file system but a slot's, whose letters are checked.
#ifndef ST_SERVER_ROUTE_H
#define ST_SERVER_ROUTE_H

#include "server/api/problem.h"

struct st_server;
struct st_call;

// Answers call->...: fills call->reply or call->answer, or refuses with call->problem.
typedef bool st_handler_fn(struct st_server *server, struct st_call *call);

struct st_route {
    const char *method; // GET answers HEAD too
    const char *path;   // may hold one *, which stands for what is up to the next slash, or behind
                        // other letters for all the rest
    bool is_public;     // no key is needed
    st_handler_fn *handler;
};

enum { ST_ROUTE_ARGUMENT_BYTES = 128 };

struct st_route_match {
    const struct st_route *route;
    size_t index;
    char argument[ST_ROUTE_ARGUMENT_BYTES]; // what stands for the *
};

extern const struct st_route st_routes[];
extern const size_t st_n_routes;

// The i-th route's path, as metrics call it.
const char *st_route_label(size_t i);

// 404 for an unknown path, 405 with *allowed (static) where it knows other methods.
bool st_route_find(const char *method, const char *path, struct st_route_match *match,
                   const char **allowed, struct st_problem *problem);

#endif
