// SPDX-License-Identifier: Apache-2.0
// Writes a timeline as trace events or as a chart.
#ifndef ST_SCHED_TRACE_H
#define ST_SCHED_TRACE_H

#include "sched/timeline.h"

#include <stdio.h>

struct st_trace {
    const char *title;                         // without quotes and angle brackets
    const char *processors[ST_MAX_PROCESSORS]; // their names; NULL: not present
    const struct st_timeline *timeline;
    const struct st_timeline *replay; // the same by the devices' own clocks; or NULL
};

// The name of a node's kind: "attention", "ffn", ... Static.
const char *st_trace_kind(uint8_t kind);

// Trace events of Chrome's format, which Perfetto opens: a process per timeline, a thread per
// processor.
void st_trace_write_json(FILE *file, const struct st_trace *trace);
// A Gantt chart in SVG, of the replay where there is one: a row per processor, a colour per kind,
// chunk numbers, idle time hatched.
void st_trace_write_svg(FILE *file, const struct st_trace *trace);
// The extension of `path` selects the format: .json or .svg. STINT_E_ARG for another, E_IO.
stint_status st_trace_write(const char *path, const struct st_trace *trace);

#endif
