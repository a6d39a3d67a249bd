// SPDX-License-Identifier: Apache-2.0
#include "sched/trace.h"

#include "base/size.h"

#include <math.h>
#include <stdlib.h>

enum { WIDTH = 1400, LEFT = 70, RIGHT = 20, TOP = 60, LANE = 56, GAP = 14, TICKS = 10 };

static const char *const colours[ST_NODE_KINDS] = {
    [ST_SUBGRAPH_ATTN_NORM] = "#bcbd22", [ST_SUBGRAPH_QKV] = "#1f77b4",
    [ST_SUBGRAPH_ATTENTION] = "#d62728", [ST_SUBGRAPH_O] = "#2ca02c",
    [ST_SUBGRAPH_FFN_NORM] = "#bcbd22",  [ST_SUBGRAPH_FFN] = "#ff7f0e",
    [ST_SUBGRAPH_SHADOW] = "#9467bd",
};

struct chart {
    FILE *file;
    const struct st_timeline *timeline;
    struct st_timeline_sums sums;
    double begin, scale; // of the first event; pixels per second
    int lane[ST_MAX_PROCESSORS];
};

static double at(const struct chart *c, double seconds) {
    return LEFT + (seconds - c->begin) * c->scale;
}

static void draw_event(const struct chart *c, const struct st_event *e) {
    double width = fmax((e->end - e->begin) * c->scale, 0.2);
    fprintf(
        c->file,
        "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>%s, chunk %u, "
        "layer %u: %.3f ms at %.3f ms</title></rect>\n",
        at(c, e->begin), c->lane[e->processor], width, LANE, colours[e->kind],
        st_trace_kind(e->kind), e->chunk, e->layer, (e->end - e->begin) * 1e3,
        (e->begin - c->begin) * 1e3);
    if (width >= 9)
        fprintf(c->file, "<text class=\"n\" x=\"%.2f\" y=\"%d\">%u</text>\n",
                at(c, e->begin) + width / 2, c->lane[e->processor] + LANE / 2 + 4, e->chunk);
}

static int by_begin(const void *a, const void *b) {
    const struct st_event *x = *(const struct st_event *const *)a;
    const struct st_event *y = *(const struct st_event *const *)b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static void draw_bubble(const struct chart *c, unsigned processor, double from, double to) {
    if ((to - from) * c->scale < 0.3) return;
    fprintf(
        c->file,
        "<rect class=\"bubble\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"><title>waiting: "
        "%.3f ms</title></rect>\n",
        at(c, from), c->lane[processor], (to - from) * c->scale, LANE, (to - from) * 1e3);
}

// Idle time: between a processor's events, before the first and after the last.
static void draw_bubbles(const struct chart *c, const struct st_event **sorted,
                         unsigned processor) {
    double now = c->begin;
    for (uint32_t i = 0; i < c->timeline->n; i++) {
        if (sorted[i]->processor != processor) continue;
        draw_bubble(c, processor, now, sorted[i]->begin);
        now = fmax(now, sorted[i]->end);
    }
    draw_bubble(c, processor, now, c->begin + c->sums.seconds);
}

// Both norms have the same colour.
static void draw_legend(FILE *file) {
    int x = LEFT;
    for (uint8_t kind = 0; kind < ST_NODE_KINDS; kind++) {
        if (kind == ST_SUBGRAPH_FFN_NORM) continue;
        fprintf(file,
                "<rect x=\"%d\" y=\"34\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%d\" "
                "y=\"44\">%s</text>\n",
                x, colours[kind], x + 17, st_trace_kind(kind));
        x += 130;
    }
    fprintf(file,
            "<rect class=\"bubble\" x=\"%d\" y=\"34\" width=\"12\" height=\"12\"/><text x=\"%d\" "
            "y=\"44\">waiting</text>\n",
            x, x + 17);
}

static void draw_axis(const struct chart *c, int bottom) {
    double step = pow(10, floor(log10(fmax(c->sums.seconds, 1e-9) / TICKS)));
    while (c->sums.seconds / step > TICKS) step *= 2;
    for (int i = 0; i * step <= c->sums.seconds; i++) {
        double x = at(c, c->begin + i * step);
        fprintf(c->file,
                "<line x1=\"%.2f\" y1=\"%d\" x2=\"%.2f\" y2=\"%d\" stroke=\"#ccc\"/><text "
                "text-anchor=\"middle\" x=\"%.2f\" y=\"%d\">%.4g ms</text>\n",
                x, TOP, x, bottom, x, bottom + 16, i * step * 1e3);
    }
}

static void draw_lanes(const struct chart *c, const struct st_trace *trace) {
    const struct st_event **sorted = calloc(c->timeline->n + 1, sizeof *sorted);
    for (uint32_t i = 0; i < c->timeline->n && sorted; i++) sorted[i] = &c->timeline->events[i];
    if (sorted) qsort(sorted, c->timeline->n, sizeof *sorted, by_begin);
    for (unsigned p = 0; p < ST_MAX_PROCESSORS; p++) {
        if (!trace->processors[p]) continue;
        fprintf(c->file,
                "<text text-anchor=\"end\" x=\"%d\" y=\"%d\">%s</text><text text-anchor=\"end\" "
                "x=\"%d\" y=\"%d\">%.1f %%</text>\n",
                LEFT - 6, c->lane[p] + LANE / 2 - 2, trace->processors[p], LEFT - 6,
                c->lane[p] + LANE / 2 + 14, 100 * c->sums.busy[p] / fmax(c->sums.seconds, 1e-12));
        if (sorted) draw_bubbles(c, sorted, p);
    }
    free(sorted);
    for (uint32_t i = 0; i < c->timeline->n; i++) draw_event(c, &c->timeline->events[i]);
}

void st_trace_write_svg(FILE *file, const struct st_trace *trace) {
    const struct st_timeline *timeline = trace->replay ? trace->replay : trace->timeline;
    struct chart c = {.file = file, .timeline = timeline, .sums = st_timeline_add_up(timeline)};
    int bottom = TOP;
    c.begin = INFINITY;
    for (uint32_t i = 0; i < c.timeline->n; i++)
        c.begin = fmin(c.begin, c.timeline->events[i].begin);
    if (c.timeline->n == 0) c.begin = 0.0;
    c.scale = (WIDTH - LEFT - RIGHT) / fmax(c.sums.seconds, 1e-12);
    for (unsigned p = 0; p < ST_MAX_PROCESSORS; p++) {
        c.lane[p] = bottom;
        if (trace->processors[p]) bottom += LANE + GAP;
    }
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
            "%d\">\n<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits="
            "\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" "
            "y2=\"6\" stroke=\"#bbb\" stroke-width=\"2\"/></pattern></defs>\n"
            "<style>text{font:12px sans-serif;fill:#333}.n{text-anchor:middle;fill:#fff}"
            ".bubble{fill:url(#hatch)}</style>\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"#fff\"/>\n",
            WIDTH, bottom + 30, WIDTH, bottom + 30);
    fprintf(file,
            "<text x=\"%d\" y=\"20\">%s%s: %.2f ms, bubbles %.1f %% of the busiest processor's "
            "time</text>\n",
            LEFT, trace->title, trace->replay ? ", by the devices' clocks" : "",
            c.sums.seconds * 1e3, 100 * c.sums.bubble_rate);
    draw_legend(file);
    draw_axis(&c, bottom);
    draw_lanes(&c, trace);
    fputs("</svg>\n", file);
}
