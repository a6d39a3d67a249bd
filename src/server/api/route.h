// SPDX-License-Identifier: Apache-2.0
// Finds the handler of a method and path. Paths are only compared with the table. The one name from
// a request that reaches the file system is a slot's, whose characters are checked.
#ifndef ST_SERVER_ROUTE_H
#define ST_SERVER_ROUTE_H

#include "server/api/problem.h"

struct st_server;
struct st_call;
struct st_protocol;
struct st_known;

// Fills call->reply or call->answer, or returns false with call->problem filled.
typedef bool st_handler_fn(struct st_server *server, struct st_call *call);

// Whether a request needs a model.
enum st_route_model {
    ST_ROUTE_NO_MODEL,
    ST_ROUTE_MODEL,     // the one that it names; with a single one it need not
    ST_ROUTE_ANY_MODEL, // where only one is served, a name is not looked at
};

struct st_route {
    const char *method; // GET answers HEAD too
    const char *path;   // may hold one *, which matches up to the next slash; at the end of a path
                        // other than "/*" it matches all the rest
    bool is_public;     // needs no key
    bool is_slow;       // its handler may take long: it runs on a thread of its own kind
    st_handler_fn *handler;
    const struct st_protocol *protocol; // of answers and problems; NULL: OpenAI's
    const struct st_known *known;       // the fields of its body; NULL: it has none
    enum st_route_model model;          // pre: is_slow, unless NO_MODEL
};

enum { ST_ROUTE_ARGUMENT_BYTES = 128 };

struct st_route_match {
    const struct st_route *route;
    size_t index;
    char argument[ST_ROUTE_ARGUMENT_BYTES]; // the text that matches *
};

extern const struct st_route st_routes[];
extern const size_t st_n_routes;

// The path of the i-th route, as a label of metrics.
const char *st_route_label(size_t i);

// 404 for an unknown path; 405 with *allowed (static) if the path has other methods.
bool st_route_find(const char *method, const char *path, struct st_route_match *match,
                   const char **allowed, struct st_problem *problem);

#endif
