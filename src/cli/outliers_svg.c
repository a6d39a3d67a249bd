// SPDX-License-Identifier: Apache-2.0
// Three panels, one above the other, with one colour per kind of linear; shadowed linears are
// filled.
#include "cli/outliers.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 760,
    LEFT = 70,
    RIGHT = 40,
    PANEL = 200,
    GAP = 70,
    TOP = 70,
    N_PANELS = 3,
    HEIGHT = TOP + N_PANELS * (PANEL + GAP),
    N_KINDS = 5,
    MAX_POINTS = 32,
};

static const struct {
    const char *name, *colour;
} kinds[N_KINDS] = {{"qkv", "#1f77b4"},
                    {"o", "#2ca02c"},
                    {"up", "#ff7f0e"},
                    {"down", "#d62728"},
                    {"head", "#7f7f7f"}};

// Converts values to positions in one panel.
struct panel {
    FILE *file;
    double top, x_max, y_max; // the axes begin at 0
};

static double number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

static double at_x(const struct panel *p, double x) {
    return LEFT + x / p->x_max * (WIDTH - LEFT - RIGHT);
}

static double at_y(const struct panel *p, double y) {
    return p->top + PANEL - y / p->y_max * PANEL;
}

static void text(FILE *file, double x, double y, const char *anchor, const char *words) {
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
            words);
}

static void line(FILE *file, double x0, double y0, double x1, double y1, const char *style) {
    fprintf(file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x0, y0, x1, y1,
            style);
}

static void frame(const struct panel *p, const char *title, const char *x_label) {
    fprintf(p->file,
            "<text class=\"title\" x=\"%d\" y=\"%.1f\">%s</text>\n"
            "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"none\" "
            "stroke=\"#999\"/>\n",
            LEFT, p->top - 10, title, LEFT, p->top, WIDTH - LEFT - RIGHT, PANEL);
    text(p->file, (LEFT + WIDTH - RIGHT) / 2.0, p->top + PANEL + 32, "middle", x_label);
}

static void y_tick(const struct panel *p, double y, const char *label) {
    line(p->file, LEFT, at_y(p, y), WIDTH - RIGHT, at_y(p, y), "stroke=\"#ddd\"");
    text(p->file, LEFT - 6, at_y(p, y) + 4, "end", label);
}

static void x_tick(const struct panel *p, double x, const char *label) {
    text(p->file, at_x(p, x), p->top + PANEL + 15, "middle", label);
}

// Layer and kind of a linear by its name, e.g. "layers.3.experts.1.up"; the head comes after the
// last layer.
static size_t place(const json_t *linear, size_t n_layers, size_t *layer) {
    const char *name = json_string_value(json_object_get(linear, "linear"));
    const char *kind = name != NULL ? strrchr(name, '.') : NULL;
    unsigned parsed = 0;
    *layer = name != NULL && sscanf(name, "layers.%u.", &parsed) == 1 ? parsed : n_layers;
    for (size_t i = 0; i < N_KINDS; i++)
        if (kind != NULL && strcmp(kind + 1, kinds[i].name) == 0) return i;
    return N_KINDS - 1;
}

static size_t count_layers(const json_t *linears) {
    size_t i, layer, n = 0;
    const json_t *linear;
    json_array_foreach(linears, i, linear) {
        if (place(linear, 0, &layer) != N_KINDS - 1 && layer + 1 > n) n = layer + 1;
    }
    return n;
}

// The name comes from a file, so it is escaped.
static void put_name(FILE *file, const json_t *linear) {
    const char *name = json_string_value(json_object_get(linear, "linear"));
    for (; name != NULL && *name != '\0'; name++)
        fputc(strchr("<>&\"'", *name) != NULL ? '?' : *name, file);
}

static void dot(const struct panel *p, const json_t *linear, size_t n_layers, double y) {
    size_t layer, kind = place(linear, n_layers, &layer);
    bool shadowed = json_is_true(json_object_get(linear, "shadowed"));
    fprintf(p->file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" stroke=\"%s\" fill=\"%s\"><title>",
            at_x(p, (double)layer + 0.5), at_y(p, y), kinds[kind].colour,
            shadowed ? kinds[kind].colour : "none");
    put_name(p->file, linear);
    fprintf(p->file, ": importance %.3g, %.0f outlier channels of %.0f, %s</title></circle>\n",
            number(linear, "importance"), number(linear, "outlier_channels"),
            number(linear, "channels"), shadowed ? "shadowed" : "pruned");
}

static void layer_ticks(const struct panel *p, size_t n_layers) {
    char label[24];
    for (size_t i = 0; i < n_layers; i += n_layers / 16 + 1) {
        snprintf(label, sizeof label, "%zu", i);
        x_tick(p, (double)i + 0.5, label);
    }
    x_tick(p, (double)n_layers + 0.5, "head");
}

static void draw_importance(FILE *file, const json_t *linears, size_t n_layers) {
    struct panel p = {file, TOP, (double)n_layers + 1, 1};
    size_t i;
    const json_t *linear;
    char label[24];
    json_array_foreach(linears, i, linear) {
        p.y_max = fmax(p.y_max, ceil(log10(fmax(number(linear, "importance"), 1.0))));
    }
    frame(&p, "Importance: largest input over the threshold", "layer");
    for (int decade = 0; decade <= (int)p.y_max; decade++) {
        snprintf(label, sizeof label, "%.0f", pow(10, decade));
        y_tick(&p, decade, label);
    }
    layer_ticks(&p, n_layers);
    json_array_foreach(linears, i, linear) {
        dot(&p, linear, n_layers, log10(fmax(number(linear, "importance"), 1.0)));
    }
}

static void draw_channels(FILE *file, const json_t *linears, size_t n_layers) {
    struct panel p = {file, TOP + PANEL + GAP, (double)n_layers + 1, 1.0};
    size_t i;
    const json_t *linear;
    frame(&p, "Channels that were an outlier at least once", "layer");
    y_tick(&p, 0.25, "25 %");
    y_tick(&p, 0.5, "50 %");
    y_tick(&p, 0.75, "75 %");
    layer_ticks(&p, n_layers);
    json_array_foreach(linears, i, linear) {
        dot(&p, linear, n_layers,
            number(linear, "outlier_channels") / fmax(number(linear, "channels"), 1.0));
    }
}

static void draw_curve(const struct panel *p, const json_t *linear, const double *shares, size_t n,
                       const char *colour) {
    const json_t *cover = json_object_get(linear, "cover");
    fprintf(p->file, "<polyline fill=\"none\" stroke-opacity=\"0.5\" stroke=\"%s\" points=\"",
            colour);
    for (size_t i = 0; i < n; i++)
        fprintf(p->file, "%.1f,%.1f ", at_x(p, 3.0 + log10(shares[i])),
                at_y(p, json_number_value(json_array_get(cover, i))));
    fputs("\"/>\n", p->file);
}

// A logarithmic axis from 0.1 % to all.
static void draw_skew(FILE *file, const json_t *notes, const json_t *linears) {
    struct panel p = {file, TOP + 2 * (PANEL + GAP), 3.0, 1.0};
    const json_t *list = json_object_get(notes, "cover_shares"), *linear;
    double shares[MAX_POINTS];
    size_t n = json_array_size(list) < MAX_POINTS ? json_array_size(list) : MAX_POINTS, i, layer;
    for (i = 0; i < n; i++)
        shares[i] = fmin(fmax(json_number_value(json_array_get(list, i)), 1e-3), 1.0);
    frame(&p, "Share of all outliers in the most frequent channels", "share of the channels");
    y_tick(&p, 0.5, "50 %");
    y_tick(&p, 0.8, "80 %");
    x_tick(&p, 0, "0.1 %");
    x_tick(&p, 1, "1 %");
    x_tick(&p, 3.0 + log10(0.03), "3 %");
    x_tick(&p, 2, "10 %");
    x_tick(&p, 3, "100 %");
    line(file, at_x(&p, 3.0 + log10(0.03)), p.top, at_x(&p, 3.0 + log10(0.03)), p.top + PANEL,
         "stroke=\"#999\" stroke-dasharray=\"4\"");
    json_array_foreach(linears, i, linear) {
        draw_curve(&p, linear, shares, n, kinds[place(linear, 0, &layer)].colour);
    }
}

bool st_cli_outliers_draw(FILE *file, const json_t *notes) {
    const json_t *linears = json_object_get(notes, "linears");
    size_t n_layers = count_layers(linears);
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n<style>text{font:12px sans-serif;fill:#333}.title{font-weight:"
            "bold}</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    for (size_t i = 0; i < N_KINDS; i++) {
        double x = LEFT + 90.0 * (double)i;
        fprintf(file, "<circle cx=\"%.1f\" cy=\"20\" r=\"4\" fill=\"%s\"/>\n", x, kinds[i].colour);
        text(file, x + 9, 24, "start", kinds[i].name);
    }
    text(file, WIDTH - RIGHT, 24, "end", "filled: shadowed, hollow: pruned");
    draw_importance(file, linears, n_layers);
    draw_channels(file, linears, n_layers);
    draw_skew(file, notes, linears);
    fputs("</svg>\n", file);
    return ferror(file) == 0;
}
