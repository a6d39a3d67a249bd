// SPDX-License-Identifier: Apache-2.0
// Descriptions of systems on a chip, and what is predicted from them.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/expect.h"
#include "sched/soc.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>

static const char text[] = "[soc]\nname = a phone\nmemory_gbps = 10\n"
                           "[npu]\nint8_gops = 32:100 256:1000\nmemory_mib = 4096\npower_w = 2\n"
                           "group_slowdown = 8\nbuild_s_per_gparam = 1\nfp16_gflops = 10\n"
                           "[cpu]\nint8_gops = 50\nattention_gflops = 10\nelementwise_meps = 100\n"
                           "power_w = 5\n";

static void a_description_is_read(void **state) {
    (void)state;
    struct st_soc s;
    assert_int_equal(st_soc_read(text, "x", &s), STINT_OK);
    assert_string_equal(s.name, "a phone");
    assert_true(s.bytes_per_second == 10e9 && s.npu_memory == 4096.0 * 1024 * 1024);
    assert_true(st_soc_rate(&s.npu.int8, 1) == 100e9 && st_soc_rate(&s.npu.int8, 32) == 100e9);
    assert_true(st_soc_rate(&s.npu.int8, 33) == 1000e9 && st_soc_rate(&s.npu.int8, 999) == 1000e9);
    assert_true(s.cpu.present && !s.gpu.present && s.group_slowdown == 8.0);
    for (size_t i = 0; st_soc_builtin(i); i++)
        if (st_soc_open(st_soc_builtin(i), &s) != STINT_OK) fail_msg("%s", stint_error_text());
    assert_int_equal(st_soc_open(ts_write_text("a.ini", text), &s), STINT_OK);
}

static void refuse(const char *line, const char *piece) {
    char all[1024];
    struct st_soc s;
    snprintf(all, sizeof all, "%s%s\n", text, line);
    assert_failure(st_soc_read(all, "my.ini", &s), STINT_E_FORMAT, piece);
    assert_failure(STINT_E_FORMAT, STINT_E_FORMAT, "my.ini: line 16");
}

static void what_is_wrong_is_named(void **state) {
    (void)state;
    struct st_soc s;
    refuse("clock_ghz = 3", "[cpu] has no key 'clock_ghz'");
    refuse("int8_gops = fast", "[cpu] int8_gops: 'fast'");
    refuse("int8_gops = 64:10 32:5", "'64:10 32:5'");
    refuse("int8_gops = 0", "'0'");
    refuse("int8_gops = 1 2 3 4 5", "'1 2 3 4 5'");
    refuse("power_w = -1", "[cpu] power_w: '-1'");
    refuse("power_w = 1e999", "'1e999'");
    refuse("nonsense", "neither a [section] nor");
    assert_failure(st_soc_read("[npu]\nint8_gops = 1\n", "x", &s), STINT_E_FORMAT, "[cpu]");
    assert_failure(st_soc_read("", "x", &s), STINT_E_FORMAT, "[npu] int8_gops is missing");
    assert_failure(st_soc_read("[soc]\nname = <i>\n", "x", &s), STINT_E_FORMAT, "'<i>'");
    assert_failure(st_soc_open("snapdragon", &s), STINT_E_ARG, "known are: flightllm-16k");
    assert_failure(st_soc_open("/no/such.ini", &s), STINT_E_IO, "/no/such.ini");
}

// ---- Predictions

static stint_simulation predict(uint32_t prompt, uint32_t chunk, const char *order,
                                const stint_simulation_options *more) {
    stint_simulation_options o = {.size = sizeof o, .outlier_prune = 1.0f};
    stint_simulation r = {.size = sizeof r};
    if (more) o = *more;
    o.size = sizeof o;
    o.soc_text = o.soc_text ? o.soc_text : text;
    o.preset = o.preset ? o.preset : "qwen1.5-1.8b";
    o.prompt_tokens = prompt;
    o.chunk_len = chunk;
    o.order = order;
    if (stint_simulate(&o, &r) != STINT_OK) fail_msg("%s", stint_error_text());
    return r;
}

static bool near(double a, double b) {
    return fabs(a - b) < 1e-4 * fabs(b);
}

static void one_chunk_is_the_sum_of_its_subgraphs(void **state) {
    (void)state;
    stint_simulation r = predict(256, 256, "inorder", NULL);
    // qwen1.5-1.8b: 24 layers, hidden 2048, 16 heads of 128, ffn 5504 gated.
    double linears = 24.0 * (4.0 * 2048 * 2048 + 3.0 * 2048 * 5504);
    double npu = 2.0 * 256 * linears / 1000e9;
    double attention = 24 * 4.0 * 2048 * (256.0 * 257 / 2) / 10e9;
    double norms = 24 * 2 * 256.0 * 2048 / 100e6;
    assert_int_equal(r.subgraphs, 144);
    assert_true(near(r.npu_seconds, npu) && near(r.cpu_seconds, attention + norms));
    assert_true(near(r.seconds, npu + attention + norms)); // one chunk: nothing overlaps
    assert_true(near(r.bubble_rate, 1.0 - npu / r.seconds));
    assert_true(near(r.joules, 2.0 * r.npu_seconds + 5.0 * r.cpu_seconds));
    assert_true(near((double)r.graph_bytes, linears));
    assert_true(near(r.build_seconds, 1e-9 * (linears + 151936.0 * 2048)));
    assert_true(near(r.decode[1] / r.decode[2], 0.5)); // bound by reading
}

static void orders_and_techniques_compare(void **state) {
    (void)state;
    stint_simulation in = predict(1024, 256, "inorder", NULL),
                     out = predict(1024, 256, "ooo", NULL);
    assert_true(near(in.npu_seconds, out.npu_seconds) && out.seconds < 0.9 * in.seconds);
    assert_int_equal(in.chunks, 4);
    assert_int_equal(out.graph_bytes_unshared, 4 * out.graph_bytes);
    stint_simulation_options o = {.per_group = true, .rebuild = true, .outlier_prune = 1.0f};
    stint_simulation naive = predict(1024, 0, "inorder", &o);
    assert_true(near(naive.npu_seconds, 8.0 * in.npu_seconds));
    assert_true(naive.seconds > naive.build_seconds + naive.npu_seconds);
    o = (stint_simulation_options){.outlier_prune = 0.5f};
    stint_simulation shadow = predict(1024, 256, "ooo", &o);
    assert_int_equal(shadow.subgraphs, out.subgraphs + 4 * 12 * 3);
    assert_true(shadow.cpu_seconds > out.cpu_seconds);
    // 64 tokens in a chunk of 256 compute all of it.
    assert_true(near(predict(64, 256, "ooo", NULL).npu_seconds,
                     predict(256, 256, "ooo", NULL).npu_seconds));
    o = (stint_simulation_options){.preset = "llama-2-7b", .outlier_prune = 1.0f};
    stint_simulation large = predict(256, 256, "ooo", &o);
    assert_true(large.npu_share > 0.5 && large.npu_share < 1.0); // 4 GiB hold a part
    assert_true((double)large.graph_bytes <= 4096.0 * 1024 * 1024);
}

static void options_are_checked(void **state) {
    (void)state;
    stint_simulation r = {.size = sizeof r};
    stint_simulation_options o = {.size = sizeof o, .soc = "sd8gen3", .prompt_tokens = 9};
    assert_failure(stint_simulate(&o, &r), STINT_E_ARG, "a model or a preset");
    o.preset = "qwen-9000";
    assert_failure(stint_simulate(&o, &r), STINT_E_ARG, "known are");
    o.preset = "phi-2";
    o.order = "best";
    assert_failure(stint_simulate(&o, &r), STINT_E_ARG, "inorder, ooo, heft");
    o.order = NULL;
    o.gpu = true;
    assert_failure(stint_simulate(&o, &r), STINT_E_ARG, "has no GPU");
    o.gpu = false;
    o.prompt_tokens = 1 << 23;
    o.chunk_len = 1;
    assert_failure(stint_simulate(&o, &r), STINT_E_ARG, "chunks: at most");
    o.prompt_tokens = 0;
    assert_failure(stint_simulate(&o, &r), STINT_E_ARG, "out of range");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_description_is_read),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(one_chunk_is_the_sum_of_its_subgraphs),
        cmocka_unit_test(orders_and_techniques_compare),
        cmocka_unit_test(options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
