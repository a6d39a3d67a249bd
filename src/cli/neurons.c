// SPDX-License-Identifier: Apache-2.0
// The neurons of a package by layer: how many are active, how unevenly, and how good the predictors
// are.
#include "cli/outliers.h"

enum { PARTS = 10, LEFT = 90, TOP = 60, CELL = 42, ROW = 18, BARS = 200 };

static double number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

// The share of all activity in the most active `parts` tenths of the neurons.
static double head_share(const json_t *layer, size_t parts) {
    const json_t *skew = json_object_get(layer, "skew");
    double sum = 0;
    for (size_t i = 0; i < parts; i++) sum += json_number_value(json_array_get(skew, i));
    return sum;
}

static bool print_table(const json_t *notes) {
    const json_t *layers = json_object_get(notes, "neurons"), *layer;
    size_t i;
    printf("%5s %5s %8s %18s %18s %6s %9s %8s\n", "layer", "bits", "active", "by the first tenth",
           "by the first four", "rank", "predicted", "found");
    json_array_foreach(layers, i, layer) {
        printf("%5zu %5.0f %7.1f%% %17.1f%% %17.1f%% ", i, number(layer, "bits"),
               100 * number(layer, "active"), 100 * head_share(layer, 1),
               100 * head_share(layer, 4));
        if (json_is_true(json_object_get(layer, "predicted")))
            printf("%6.0f %8.1f%% %7.2f%%\n", number(layer, "rank"), 100 * number(layer, "named"),
                   100 * number(layer, "found"));
        else
            printf("%6s\n", "none");
    }
    return true;
}

// Draws how often the neurons of one tenth are active, as a shade.
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

// Draws the parts of the bound, from left to right.
static void draw_bound(FILE *file, double y, const json_t *memory) {
    static const struct {
        const char *key, *name, *colour;
    } regions[] = {{"fixed_bytes", "fixed", "#9a9a9a"},
                   {"kv_bytes", "KV", "#d9b44a"},
                   {"hot_bytes", "hot", "#d1495b"},
                   {"cold_bytes", "cold", "#66a182"}};
    double bound = number(memory, "budget_bytes"), x = LEFT, width = PARTS * CELL;
    fprintf(file, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">bound</text>\n", LEFT - 8,
            y + ROW - 5);
    for (size_t i = 0; i < sizeof regions / sizeof *regions && bound > 0; i++) {
        double part = width * number(memory, regions[i].key) / bound;
        fprintf(file,
                "<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n"
                "<text x=\"%.0f\" y=\"%.0f\" fill=\"%s\">%s %.1f MiB</text>\n",
                x, y, part, ROW - 1, regions[i].colour, LEFT + width / 4 * (double)i,
                y + 2 * ROW - 5, regions[i].colour, regions[i].name,
                number(memory, regions[i].key) / (1 << 20));
        x += part;
    }
}

// Draws which neurons are in memory, the most active ones first, and the share of needed neurons
// that a token misses.
static void draw_plan(FILE *file, size_t i, const json_t *layer) {
    double x = LEFT + PARTS * CELL + 40 + BARS, y = TOP + (double)(i * ROW) + 2;
    double hot = BARS * number(layer, "hot"), cold = BARS * number(layer, "cold");
    fprintf(file,
            "<rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" fill=\"#ececec\"/>\n"
            "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"#d1495b\"/>\n"
            "<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"#66a182\"/>\n",
            x, y, BARS, ROW - 5, x, y, hot, ROW - 5, x + hot, y, cold, ROW - 5);
    fprintf(file,
            "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"#30638e\"/>\n"
            "<text x=\"%.1f\" y=\"%.0f\">%.1f %%</text>\n",
            x + BARS + 20, y, BARS * (1 - number(layer, "hit_rate")), ROW - 5,
            x + BARS + 24 + BARS * (1 - number(layer, "hit_rate")), y + ROW - 7,
            100 * (1 - number(layer, "hit_rate")));
}

static void draw_titles(FILE *file, bool neurons, bool planned) {
    int x = LEFT + PARTS * CELL + 20;
    fprintf(file, "<text class=\"title\" x=\"%d\" y=\"22\">%s</text>\n", LEFT,
            neurons ? "How often neurons are active, in percent, the most active tenth of each "
                      "layer first"
                    : "Use of the memory bound");
    if (!neurons) return;
    fprintf(file,
            "<text x=\"%d\" y=\"46\">blue: active; grey: predicted"
            "</text>\n",
            x);
    if (planned)
        fprintf(file,
                "<text x=\"%d\" y=\"46\">stay: red in clusters, green singly</text>\n"
                "<text x=\"%d\" y=\"46\">expected misses of the needed neurons</text>\n",
                x + 20 + BARS, x + 40 + 2 * BARS);
}

bool st_cli_neurons_draw(FILE *file, const json_t *notes) {
    const json_t *layers = json_object_get(notes, "neurons"), *layer;
    const json_t *plan = json_object_get(notes, "plan");
    const json_t *planned = json_object_get(plan, "layers");
    size_t i, n = json_array_size(layers);
    int more = json_array_size(planned) > 0 ? 2 * BARS + 100 : 0;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" "
            "font-family=\"sans-serif\" font-size=\"11\">\n"
            "<style>.cell{text-anchor:middle;font-size:9px}.title{font-size:14px}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            LEFT + PARTS * CELL + 60 + BARS + more, (size_t)TOP + (n + (plan ? 3 : 0)) * ROW + 20);
    draw_titles(file, n > 0, more > 0);
    json_array_foreach(layers, i, layer) draw_layer(file, i, layer);
    json_array_foreach(planned, i, layer) draw_plan(file, i, layer);
    if (plan != NULL)
        draw_bound(file, TOP + (double)((n + 1) * ROW), json_object_get(plan, "memory"));
    fprintf(file, "</svg>\n");
    return ferror(file) == 0;
}

const struct st_cli_view st_cli_neurons_view = {
    .key = "neurons",
    .hint = "stores no single neurons: 'stint prepare --neurons' writes them, for a model with "
            "ReLU",
    .print = print_table,
    .draw = st_cli_neurons_draw};
