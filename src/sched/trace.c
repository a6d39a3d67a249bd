// SPDX-License-Identifier: Apache-2.0
#include "sched/trace.h"

#include "base/output.h"

#include <string.h>

const char *st_trace_kind(uint8_t kind) {
    return kind == ST_SUBGRAPH_SHADOW ? "shadow" : st_subgraphs[kind].name;
}

static void write_event(FILE *file, const struct st_event *e) {
    const char *kind = st_trace_kind(e->kind);
    fprintf(file,
            ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"name\":\"%s\",\"cat\":\"%s\",\"ts\":%.3f,"
            "\"dur\":%.3f,\"args\":{\"chunk\":%u,\"layer\":%u}}",
            e->processor + 1u, kind, e->processor == ST_PROCESSOR_CPU ? "cpu" : "npu",
            e->begin * 1e6, (e->end - e->begin) * 1e6, e->chunk, e->layer);
}

void st_trace_write_json(FILE *file, const struct st_trace *trace) {
    fprintf(file,
            "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}}",
            trace->title);
    for (unsigned p = 0; p < ST_MAX_PROCESSORS; p++)
        if (trace->processors[p])
            fprintf(file,
                    ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":"
                    "{\"name\":\"%s\"}}",
                    p + 1, trace->processors[p]);
    for (uint32_t i = 0; i < trace->timeline->n; i++)
        write_event(file, &trace->timeline->events[i]);
    fputs("\n]}\n", file);
}

stint_status st_trace_write(const char *path, const struct st_trace *trace) {
    const char *ending = strrchr(path, '.');
    bool json = ending && strcmp(ending, ".json") == 0;
    if (!json && !(ending && strcmp(ending, ".svg") == 0))
        return st_fail(STINT_E_ARG, "%s: a trace is a .json or an .svg file", path);
    struct st_output output;
    ST_TRY(st_output_open(path, 0666, &output));
    (json ? st_trace_write_json : st_trace_write_svg)(output.file, trace);
    return st_output_close(&output, true);
}
