// SPDX-License-Identifier: Apache-2.0
// The neurons of a package by layer: how many are active, how unevenly, what predictors do.
#include "cli/outliers.h"

enum { PARTS = 10, LEFT = 90, TOP = 60, CELL = 42, ROW = 18, BARS = 200 };

static double number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

// The share of all activity that the most active `parts` tenths of the neurons have.
static double head_share(const json_t *layer, size_t parts) {
    const json_t *skew = json_object_get(layer, "skew");
    double sum = 0;
    for (size_t i = 0; i < parts; i++) sum += json_number_value(json_array_get(skew, i));
    return sum;
}

static bool print_table(const json_t *notes) {
    const json_t *layers = json_object_get(notes, "neurons"), *layer;
    size_t i;
    printf("%5s %8s %18s %18s %6s %8s %8s\n", "layer", "active", "by the first tenth",
           "by the first four", "rank", "named", "found");
    json_array_foreach(layers, i, layer) {
        printf("%5zu %7.1f%% %17.1f%% %17.1f%% ", i, 100 * number(layer, "active"),
               100 * head_share(layer, 1), 100 * head_share(layer, 4));
        if (json_is_true(json_object_get(layer, "predicted")))
            printf("%6.0f %7.1f%% %7.2f%%\n", number(layer, "rank"), 100 * number(layer, "named"),
                   100 * number(layer, "found"));
        else
            printf("%6s\n", "none");
    }
    return true;
}

// How often the neurons of one tenth are active, as a shade.
static void draw_cell(FILE *file, double x, double y, double rate) {
    int light = (int)(255 - 215 * (rate > 1 ? 1 : rate));
    fprintf(file,
            "<rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" fill=\"rgb(%d,%d,255)\"/>\n"
            "<text class=\"cell\" x=\"%.0f\" y=\"%.0f\">%.0f</text>\n",
            x, y, CELL - 1, ROW - 1, light, light, x + CELL / 2.0, y + ROW - 5, 100 * rate);
}

static void draw_layer(FILE *file, size_t i, const json_t *layer) {
    const json_t *skew = json_object_get(layer, "skew");
    double y = TOP + (double)(i * ROW), active = number(layer, "active"),
           x = LEFT + PARTS * CELL + 20;
    bool predicted = json_is_true(json_object_get(layer, "predicted"));
    fprintf(file, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">layer %zu</text>\n", LEFT - 8,
            y + ROW - 5, i);
    for (size_t part = 0; part < PARTS; part++)
        draw_cell(file, LEFT + (double)(part * CELL), y,
                  json_number_value(json_array_get(skew, part)) * active * PARTS);
    if (predicted)
        fprintf(file,
                "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"#c8c8c8\"/>\n", x,
                y + 2, BARS * number(layer, "named"), ROW - 5);
    fprintf(file, "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"#1f77b4\"/>\n",
            x, y + 2, BARS * active, ROW - 5);
}

static bool draw(FILE *file, const json_t *notes) {
    const json_t *layers = json_object_get(notes, "neurons"), *layer;
    size_t i, n = json_array_size(layers);
    int width = LEFT + PARTS * CELL + 40 + BARS;
    fprintf(
        file,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n"
        "<style>.cell{text-anchor:middle;font-size:9px}.title{font-size:14px}</style>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
        "<text class=\"title\" x=\"%d\" y=\"22\">How often neurons are active, in percent, the "
        "most active tenth of each layer first</text>\n"
        "<text x=\"%d\" y=\"46\">blue: active for a token; grey: named by the predictor</text>\n",
        width, (size_t)TOP + n * ROW + 20, LEFT, LEFT + PARTS * CELL + 20);
    json_array_foreach(layers, i, layer) draw_layer(file, i, layer);
    fprintf(file, "</svg>\n");
    return ferror(file) == 0;
}

const struct st_cli_view st_cli_neurons_view = {
    .key = "neurons",
    .mend = "has no neurons of its own: 'stint prepare --neurons' writes them, for a model with "
            "ReLU",
    .print = print_table,
    .draw = draw};
