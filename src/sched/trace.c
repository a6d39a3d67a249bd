// SPDX-License-Identifier: Apache-2.0
#include "sched/trace.h"

#include "base/output.h"

#include <string.h>

const char *st_trace_kind(uint8_t kind) {
    return kind == ST_SUBGRAPH_SHADOW ? "shadow" : st_subgraphs[kind].name;
}

static void write_event(FILE *file, int process, const struct st_event *e) {
    const char *kind = st_trace_kind(e->kind);
    fprintf(file,
            ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"name\":\"%s\",\"cat\":\"%s\",\"ts\":%.3f,"
            "\"dur\":%.3f,\"args\":{\"chunk\":%u,\"layer\":%u",
            process, e->processor + 1u, kind, e->processor == ST_PROCESSOR_CPU ? "cpu" : "npu",
            e->begin * 1e6, (e->end - e->begin) * 1e6, e->chunk, e->layer);
    if (e->time.device > 0.0f)
        fprintf(file, ",\"device_us\":%.3f,\"sync_us\":%.3f", (double)e->time.device * 1e6,
                (double)e->time.sync * 1e6);
    fputs("}}", file);
}

static void write_timeline(FILE *file, const struct st_trace *trace, int process, const char *clock,
                           const struct st_timeline *timeline) {
    fprintf(file,
            "%s{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"%s%s\"}}",
            process > 1 ? ",\n" : "", process, trace->title, clock);
    for (unsigned p = 0; p < ST_MAX_PROCESSORS; p++)
        if (trace->processors[p])
            fprintf(file,
                    ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"name\":\"thread_name\",\"args\":"
                    "{\"name\":\"%s\"}}",
                    process, p + 1, trace->processors[p]);
    for (uint32_t i = 0; i < timeline->n; i++) write_event(file, process, &timeline->events[i]);
}

void st_trace_write_json(FILE *file, const struct st_trace *trace) {
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", file);
    write_timeline(file, trace, 1, "", trace->timeline);
    if (trace->replay) write_timeline(file, trace, 2, ", by the devices' clocks", trace->replay);
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
