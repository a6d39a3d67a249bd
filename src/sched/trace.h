// SPDX-License-Identifier: Apache-2.0
// Pictures of a timeline.
#ifndef ST_SCHED_TRACE_H
#define ST_SCHED_TRACE_H

#include "sched/timeline.h"

#include <stdio.h>

struct st_trace {
    const char *title;                         // plain words: neither quotes nor angle brackets
    const char *processors[ST_MAX_PROCESSORS]; // names of the lanes; NULL: there is no such one
    const struct st_timeline *timeline;
};

// "attention", "ffn", ... of a node's kind. Static.
const char *st_trace_kind(uint8_t kind);

// Trace events of Chrome's format, which Perfetto opens: a process per run, a thread per processor.
void st_trace_write_json(FILE *file, const struct st_trace *trace);
// A Gantt chart in SVG: a lane per processor, a colour per kind, chunk numbers, waiting hatched.
void st_trace_write_svg(FILE *file, const struct st_trace *trace);
// By the ending of `path`: .json or .svg. STINT_E_ARG for another, E_IO.
stint_status st_trace_write(const char *path, const struct st_trace *trace);

#endif
