// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_report.h"

#include "cli/common.h"
#include "cli/output.h"

#include <stdio.h>
#include <string.h>

enum { SHARE_BYTES = 64 }; // of a formatted share

// What prompts are computed with: INT8 units, BF16 units where there are any and the weights are in
// BF16 or may be rounded, 16-bit integers where they may be rounded, else floats.
static double prefill_peak(const struct st_bench_figures *f, const char **name) {
    const stint_roofline *r = &f->roofline;
    bool fast = f->info.exec == STINT_EXEC_FAST;
    const struct {
        const char *name;
        bool used;
        double peak;
    } units[] = {
        {"int8", f->info.exec == STINT_EXEC_NPU, r->int8_ops_per_second},
        {"bf16", fast || strcmp(f->info.weight_type, "bf16") == 0, r->bf16_flops_per_second},
        {"int16", fast, r->int16_ops_per_second},
        {"float", true, r->float_flops_per_second},
    };
    size_t i = 0;
    while (i < 3 && !(units[i].used && units[i].peak > 0)) i++;
    *name = units[i].name;
    return units[i].peak;
}

static double prefill_share(const struct st_bench_figures *f, size_t i) {
    const char *name;
    double peak = prefill_peak(f, &name);
    double ops = (double)f->info.linear_ops_per_token * f->prefills[i].n_tokens;
    return peak > 0 ? ops / f->prefills[i].seconds / peak : 0;
}

static double best_prefill_share(const struct st_bench_figures *f) {
    double best = 0;
    for (size_t i = 0; i < f->n_prefills; i++)
        if (prefill_share(f, i) > best) best = prefill_share(f, i);
    return best;
}

static double prefill_rate(const struct st_bench_prefill *p) {
    return st_cli_rate(p->n_tokens, p->seconds);
}

// Tokens of all sequences of the batch.
static double decode_rate(const struct st_bench_figures *f, const struct st_bench_decode *d) {
    return st_cli_rate((size_t)f->n_tokens * f->batch, d->seconds);
}

static json_t *describe_prefills(const struct st_bench_figures *f) {
    json_t *array = json_array();
    for (size_t i = 0; i < f->n_prefills; i++) {
        const struct st_bench_prefill *p = &f->prefills[i];
        json_array_append_new(
            array, json_pack("{s:I, s:I, s:f, s:f, s:O}", "tokens", (json_int_t)p->n_tokens,
                             "depth", (json_int_t)p->depth, "seconds", p->seconds,
                             "tokens_per_second", prefill_rate(p), "schedule", p->schedule));
    }
    return array;
}

static json_t *describe_decodes(const struct st_bench_figures *f) {
    json_t *array = json_array();
    for (size_t i = 0; i < f->n_decodes; i++) {
        const struct st_bench_decode *d = &f->decodes[i];
        json_array_append_new(array,
                              json_pack("{s:I, s:I, s:I, s:I, s:f, s:I, s:f, s:f}", "tokens",
                                        (json_int_t)f->n_tokens, "depth", (json_int_t)d->depth,
                                        "batch", (json_int_t)f->batch, "bits", (json_int_t)d->bits,
                                        "tokens_per_second", decode_rate(f, d), "bytes_per_token",
                                        (json_int_t)d->bytes, "read_bytes_per_second", d->read_rate,
                                        "bandwidth_fraction", d->share));
    }
    return array;
}

static json_t *describe_limits(const struct st_bench_figures *f) {
    const stint_roofline *r = &f->roofline;
    const char *peak;
    prefill_peak(f, &peak);
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:f}", "int8_ops_per_second",
                     r->int8_ops_per_second, "int16_ops_per_second", r->int16_ops_per_second,
                     "bf16_flops_per_second", r->bf16_flops_per_second, "float_flops_per_second",
                     r->float_flops_per_second, "bytes_per_second", r->bytes_per_second,
                     "prefill_fraction", best_prefill_share(f), "prefill_peak", peak,
                     "decode_fraction", f->n_decodes ? f->decodes[0].share : 0.0);
}

bool st_bench_print_object(const char *command, const struct st_bench_figures *f) {
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:o, s:o, s:I, s:o, s:o}", "model", f->name, "exec",
        stint_exec_name(f->info.exec), "device", stint_session_device(f->session), "chunk_tokens",
        (json_int_t)stint_session_chunk(f->session), "threads", (json_int_t)f->n_threads, "cpu",
        stint_cpu_name(), "cpu_features", stint_cpu_features(), "prefill", describe_prefills(f),
        "decode", describe_decodes(f), "peak_rss_bytes", (json_int_t)f->peak_bytes, "roofline",
        describe_limits(f), "shadow", st_cli_shadow(f->session));
    st_cli_add_memory(f->session, object);
    return st_cli_print_json(command, object);
}

// Empty if the limit was not measured.
static const char *share_of(double share, double limit, const char *name, char text[SHARE_BYTES]) {
    *text = '\0';
    if (limit > 0) snprintf(text, SHARE_BYTES, " %6.1f %% of %s", 100 * share, name);
    return text;
}

void st_bench_print_table(const struct st_bench_figures *f) {
    const stint_roofline *r = &f->roofline;
    char bytes[ST_CLI_SIZE_BYTES], share[SHARE_BYTES], memory[ST_CLI_MEMORY_BYTES], name[16];
    const char *unit;
    double peak = prefill_peak(f, &unit);
    snprintf(name, sizeof name, "%s peak", unit);
    st_cli_title(f->name);
    st_cli_row("weights", "%s, %s", st_cli_size(f->info.weight_bytes, bytes), f->info.weight_type);
    st_cli_row("computed by", "%s, %u threads, chunks of %zu tokens", stint_cpu_name(),
               f->n_threads, stint_session_chunk(f->session));
    st_cli_row("instructions", "%s", stint_cpu_features());
    if (f->depth > 0)
        st_cli_row("behind", "%u tokens; reading is that of the weights alone", f->depth);
    for (size_t i = 0; i < f->n_prefills; i++) {
        const struct st_bench_prefill *p = &f->prefills[i];
        st_cli_row(i == 0 ? "prefill" : "", "%6u tokens %9.3f s %10.1f tokens/s%s", p->n_tokens,
                   p->seconds, prefill_rate(p), share_of(prefill_share(f, i), peak, name, share));
    }
    for (size_t i = 0; i < f->n_decodes; i++) {
        const struct st_bench_decode *d = &f->decodes[i];
        st_cli_row(i == 0 ? "decode" : "", "%6u tokens %9.3f s %10.1f tokens/s%s, %u bits",
                   f->n_tokens, d->seconds, decode_rate(f, d),
                   share_of(d->share, d->read_rate, "plain reading", share), d->bits);
    }
    if (r->bytes_per_second > 0)
        st_cli_row("machine limits", "int8 %.2f, bf16 %.2f, float %.3f TOPS; memory %.1f GB/s",
                   r->int8_ops_per_second * 1e-12, r->bf16_flops_per_second * 1e-12,
                   r->float_flops_per_second * 1e-12, r->bytes_per_second * 1e-9);
    st_cli_row("peak memory", "%s",
               f->bounded ? st_cli_memory(f->session, memory) : st_cli_size(f->peak_bytes, memory));
}
