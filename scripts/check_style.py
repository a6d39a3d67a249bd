#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of style that a machine can check: lengths, layers, forbidden calls, tests per file,
exported symbols, the public header alone. Prints file:line for each violation, one summary line,
and exits with 1 if there is any. Exceptions, each with its reason, are in style_allow.txt."""
import argparse
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys

MAX_FILE, MAX_FUNCTION, MAX_COLUMNS, MAX_SUBJECT = 500, 60, 100, 60
FOLDERS = ("include", "src", "hexagon", "tests", "fuzz", "bench", "bindings", "examples", "scripts",
           "cmake", ".ci")
CODE = (".c", ".h")
TEXT = CODE + (".py", ".sh", ".cmake", ".txt", ".in", ".js", ".css")

# From the bottom up: a file includes only what stands before its own folder.
LAYERS = ("base", "format", "tokenizer", "template", "constraint", "chat", "kernels", "device",
          "model", "neuron", "draft", "sched", "session", "generate", "prepare", "eval", "hub",
          "server", "cli")
# The same within a folder of folders; its own files stand above them.
ROOMS = {"server": ("scheduler", "models", "api", "protocol", "http")}

UNSAFE = "strtok gets sprintf vsprintf strcpy strcat atoi atol atof system"
ENDS_OR_PRINTS = ("exit _exit quick_exit abort printf vprintf puts putchar perror err errx warn "
                  "warnx")
# What files of cli include beyond stint.h: the server is the command's, not the library's, and
# there is one way to write whole files.
BEYOND_API = {"serve.c": "server/server.h", "serve_models.h": "server/server.h",
              "file.h": "base/output.h"}
# Endings of files that are one instruction set's version of a family, checked with the family.
ISA = re.compile(r"_(scalar|avx2|avxvnni|avx512\w*|amx|neon|dotprod|i8mm)$")
# Objects that may hold process-wide state, and why.
STATE = {"status.c": "the record of each thread", "cpu.c": "what the CPU can do, detected once",
         "log.c": "the callback of the embedding program"}
# Source files whose test has another name.
GOLDEN, COMMANDS = "tests/golden/test_models.py", "tests/e2e/test_cli.py"
MODELS = "tests/e2e/test_serve_models.py"
SERVE, HOSTILE = "tests/e2e/test_serve.py", "tests/e2e/test_serve_hostile.py"
TOKENIZERS = "tests/golden/test_tokenizers.c"
PULL, JINJA = "tests/e2e/test_pull.py", "tests/template/test_jinja.c"
CONFORMANCE = "tests/device/test_conformance.c"
# Folders whose files are rows of a table that a test walks.
WALKED = {"src/sched/policies/": "tests/sched/test_schedule.c", "src/device/*/": CONFORMANCE,
          "src/session/weights/hybrid_": "tests/session/test_hybrid.c"}
COVERED = {
    "src/base/direct.c": "tests/base/test_loader.c",
    "src/base/thread_start.c": "tests/base/test_thread.c",
    "src/kernels/linear_tile.c": "tests/kernels/check_linear.c",
    "src/kernels/nested_values.c": "tests/kernels/check_nested.c",
    "src/kernels/neuron_levels.c": "tests/kernels/check_neuron.c",
    "src/model/config_state.c": "tests/session/test_state.c",
    "src/model/weights_state.c": "tests/session/test_state.c",
    "src/model/weights_neurons.c": "tests/session/test_predict.c",
    "src/neuron/neurons.c": "tests/session/test_predict.c",
    "src/neuron/dense.c": "tests/session/test_hybrid.c",
    "src/session/step/step_program.c": "tests/session/test_device_step.c",
    "src/neuron/slices.c": "tests/session/test_bounded.c",
    "src/neuron/slices_plan.c": "tests/session/test_plan.c",
    "src/neuron/sparse.c": "tests/session/test_predict.c",
    "src/prepare/adam.c": "tests/prepare/test_predictor.c",
    "src/prepare/activity.c": "tests/prepare/test_predictor.c",
    "src/prepare/neurons.c": "tests/session/test_predict.c",
    "src/session/weights/experts.c": "tests/session/test_experts.c",
    "src/session/weights/memory_info.c": "tests/session/test_bounded.c",
    "src/session/linear/route.c": GOLDEN,
    "src/session/weights/storage.c": "tests/session/test_plan.c",
    "src/session/weights/storage_rows.c": "tests/e2e/test_memory.py",
    "src/session/buffers.c": "tests/session/test_executions.c",
    "src/session/norm.c": "tests/session/test_executions.c",
    "src/session/precision/schedule_json.c": "tests/session/test_precision.c",
    "src/session/linear/blocks.c": "tests/session/test_executions.c",
    "src/session/linear/paths.c": "tests/session/test_executions.c",
    "src/session/linear/stored.c": "tests/golden/test_devices.py",
    "src/session/linear/stored_run.c": "tests/session/test_share.c",
    "src/session/linear/table.c": "tests/session/test_executions.c",
    "src/session/linear/rows.c": "tests/session/test_executions.c",
    "src/sched/simulate.c": "tests/sched/test_soc.c",
    "src/sched/dag.c": "tests/sched/test_schedule.c",
    "src/sched/prefill.c": "tests/sched/test_schedule.c",
    "src/sched/timeline.c": "tests/sched/test_schedule.c",
    "src/sched/trace_svg.c": "tests/sched/test_trace.c",
    "src/session/kv/attention_gate.c": "tests/session/test_state.c",
    "src/session/kv/delta.c": "tests/session/test_state.c",
    "src/session/kv/mamba.c": "tests/session/test_state.c",
    "src/session/kv/matrix.c": "tests/session/test_state.c",
    "src/session/kv/copy.c": "tests/server/test_slot_choice.c",
    "src/session/kv/state_places.c": "tests/session/test_state.c",
    "src/session/kv/short_conv.c": "tests/session/test_state.c",
    "src/session/replay.c": "tests/session/test_state.c",
    "src/session/trace.c": "tests/session/test_split.c",
    "src/cli/ablation.c": "tests/e2e/test_cli.py",
    "src/cli/several.c": "tests/e2e/test_run.py",
    "src/generate/teller.c": "tests/generate/test_generate.c",
    "src/cli/losses.c": "tests/e2e/test_prepare.py",
    "src/cli/outliers.c": "tests/e2e/test_prepare.py",
    "src/cli/outliers_svg.c": "tests/e2e/test_prepare.py",
    "src/chat/tool_bodies.c": "tests/chat/test_tool_calls.c",
    "src/model/weights_ahead.c": "tests/session/test_ahead.c",
    "src/eval/lines.c": "tests/eval/test_items.c",
    "src/eval/read_items.c": "tests/eval/test_items.c",
    "src/eval/score.c": "tests/golden/test_eval.py",
    "src/eval/generate_task.c": "tests/golden/test_eval.py",
    "src/eval/droid_task.c": "tests/e2e/test_eval.py",
    "src/eval/mt_bench_task.c": "tests/eval/test_answers.c",
    "src/eval/read_prompts.c": "tests/eval/test_items.c",
    "src/eval/quality.c": "tests/e2e/test_schedule.py",
    "src/eval/schedule_run.c": "tests/e2e/test_schedule.py",
    "src/eval/solve.c": "tests/e2e/test_schedule.py",
    "src/eval/train.c": "tests/e2e/test_schedule.py",
    "src/prepare/measure.c": "tests/prepare/test_prepare.c",
    "src/prepare/nested_checks.c": "tests/session/test_pinned.c",
    "src/session/weights/budget.c": "tests/session/test_bounded.c",
    "src/prepare/moments.c": "tests/prepare/test_quantize.c",
    "src/prepare/nested.c": "tests/session/test_precision.c",
    "src/session/tune.c": "tests/session/test_split.c",
    "src/session/precision/learned.c": "tests/e2e/test_schedule.py",
    "src/server/scheduler/job.c": "tests/server/test_scheduler.c",
    "src/server/scheduler/record.c": "tests/server/test_scheduler.c",
    "src/server/api/problem.c": "tests/server/test_json_text.c",
    "src/server/api/fields.c": "tests/server/test_request.c",
    "src/server/api/request_chat.c": "tests/server/test_request.c",
    "src/server/api/logprobs.c": "tests/server/test_response.c",
    "src/server/api/answer.c": SERVE,
    "src/server/api/complete.c": SERVE,
    "src/server/api/call.c": MODELS,
    "src/server/models/served.c": MODELS,
    "src/server/models/keeper.c": "tests/server/test_models.c",
    "src/cli/serve_models.c": MODELS,
    "src/cli/offline.c": "tests/e2e/test_phones_doc.py",
    "src/device/hexagon/fastrpc_absent.c": "tests/e2e/test_phones_doc.py",
    "src/device/hexagon/process_absent.c": "tests/e2e/test_phones_doc.py",
    "src/device/hexagon/fastrpc_api.c": "tests/device/test_fastrpc.c",
    "src/cli/edit_absent.c": "tests/e2e/test_phones_doc.py",
    "src/server/api/tokens.c": SERVE,
    "src/server/protocol/anthropic.c": "tests/e2e/test_serve_protocols.py",
    "src/server/protocol/ollama.c": "tests/e2e/test_serve_protocols.py",
    "src/server/protocol/ollama_info.c": "tests/e2e/test_serve_protocols.py",
    "src/server/api/embed.c": "tests/e2e/test_serve_embed.py",
    "src/server/protocol/ollama_embed.c": "tests/e2e/test_serve_embed.py",
    "src/server/api/infill.c": "tests/e2e/test_serve_infill.py",
    "src/server/protocol/infill.c": "tests/e2e/test_serve_infill.py",
    "src/server/protocol/responses.c": "tests/e2e/test_serve_protocols.py",
    "src/server/protocol/responses_input.c": "tests/e2e/test_serve_protocols.py",
    "src/server/protocol/translate.c": "tests/e2e/test_serve_protocols.py",
    "src/server/http/exchange.c": HOSTILE,
    "src/server/http/http.c": HOSTILE,
    "src/server/api/info.c": SERVE,
    "src/server/http/listen.c": "tests/server/test_server.c",
    "src/server/http/page.c": SERVE,
    "src/server/http/reply.c": SERVE,
    "src/server/api/slot_files.c": SERVE,
    "src/server/http/headers.c": "tests/e2e/test_serve_connections.py",
    "src/server/http/workers.c": "tests/server/test_prompts.c",
    "src/cli/fault.c": HOSTILE,
    "src/server/http/linger.c": "tests/e2e/test_serve_connections.py",
    "src/server/scheduler/slots.c": "tests/server/test_scheduler.c",
    "src/session/precision/schedule.c": "tests/session/test_precision.c",
    "src/eval/methods.c": "tests/golden/test_eval.py",
    "src/eval/tasks.c": "tests/golden/test_eval.py",
    "src/eval/item_tasks.c": "tests/golden/test_eval.py",
    "src/eval/text_tasks.c": "tests/golden/test_eval.py",
    **{f"src/device/{name}.c": CONFORMANCE for name in (
        "device", "buffers", "graphs", "mirror", "subgraph", "outliers", "epilogue", "settings")},
    "src/device/sim/sim_queue.c": "tests/device/test_jobs.c",
    "src/model/preset_int8.c": "tests/model/test_weights_int8.c",
    "src/prepare/select.c": "tests/prepare/test_prepare.c",
    "src/prepare/columns.c": "tests/prepare/test_pack.c",
    "src/prepare/convert.c": "tests/prepare/test_prepare.c",
    "src/prepare/plan.c": "tests/prepare/test_outliers.c",
    "src/prepare/calibration_tokens.c": "tests/prepare/test_calibrate.c",
    "src/prepare/predictions.c": "tests/prepare/test_calibrate.c",
    "src/prepare/calibration_text.c": "tests/prepare/test_calibrate.c",
    "src/format/package_writer.c": "tests/format/test_package.c",
    "src/model/arch.c": "tests/model/test_config.c",
    "src/model/arch_find.c": "tests/model/test_config.c",
    "src/model/arch_names.c": GOLDEN,
    "src/model/arch_names_gguf.c": GOLDEN,
    "src/model/fingerprint.c": "tests/session/test_save_identity.c",
    "src/model/config_hf.c": "tests/model/test_config.c",
    "src/model/config_gguf.c": GOLDEN,
    "src/model/model.c": GOLDEN,
    "src/model/weights.c": GOLDEN,
    "src/model/describe.c": COMMANDS,  # inspect
    "src/model/graph.c": COMMANDS,
    "src/model/preset.c": COMMANDS,  # bench --shape
    "src/tokenizer/bpe.c": "tests/tokenizer/test_tokenizer.c",
    "src/base/buffer.c": "tests/tokenizer/test_tokenizer.c",
    "src/tokenizer/unigram.c": "tests/tokenizer/test_tokenizer.c",
    "src/constraint/multiples.c": "tests/constraint/test_constraint.c",
    "src/constraint/grammar_read.c": "tests/constraint/test_grammar.c",
    "src/constraint/chars.c": "tests/constraint/test_constraint.c",
    "src/constraint/code.c": "tests/constraint/test_constraint.c",
    "src/constraint/values.c": "tests/constraint/test_constraint.c",
    "src/constraint/schema.c": "tests/constraint/test_constraint.c",
    "src/constraint/schema_keywords.c": "tests/constraint/test_constraint.c",
    "src/constraint/schema_matches.c": "tests/constraint/test_constraint.c",
    "src/constraint/schema_multiple.c": "tests/constraint/test_constraint.c",
    "src/constraint/schema_not.c": "tests/constraint/test_constraint.c",
    "src/constraint/schema_one.c": "tests/constraint/test_constraint.c",
    "src/constraint/schema_unique.c": "tests/constraint/test_constraint.c",
    "src/constraint/schema_merge.c": "tests/constraint/test_constraint.c",
    "src/constraint/schema_number.c": "tests/constraint/test_numbers.c",
    "src/constraint/schema_object.c": "tests/constraint/test_constraint.c",
    "src/constraint/schema_regex.c": "tests/constraint/test_schema_pattern.c",
    "src/constraint/schema_string.c": "tests/constraint/test_constraint.c",
    "src/tokenizer/normalize.c": "tests/tokenizer/test_pretokenize.c",
    "src/tokenizer/regex.c": "tests/tokenizer/test_pretokenize.c",
    "src/chat/messages.c": "tests/chat/test_chat.c",
    "src/chat/tool_text.c": "tests/chat/test_chat.c",
    "src/template/builtin.c": JINJA,
    "src/template/compare.c": JINJA,
    "src/template/eval.c": JINJA,
    "src/template/expression.c": JINJA,
    "src/template/filters.c": JINJA,
    "src/template/functions.c": JINJA,
    "src/template/json.c": JINJA,
    "src/template/lex.c": JINJA,
    "src/template/lists.c": JINJA,
    "src/template/lookup.c": JINJA,
    "src/template/methods.c": JINJA,
    "src/template/numbers.c": JINJA,
    "src/template/operate.c": JINJA,
    "src/template/parse.c": JINJA,
    "src/template/pool.c": JINJA,
    "src/template/primary.c": JINJA,
    "src/template/print.c": JINJA,
    "src/template/run.c": JINJA,
    "src/template/sort.c": JINJA,
    "src/template/tests.c": JINJA,
    "src/template/text.c": JINJA,
    "src/template/unescape.c": JINJA,
    "src/template/value.c": JINJA,
    "src/tokenizer/added_tokens.c": TOKENIZERS,
    "src/tokenizer/load_files.c": TOKENIZERS,
    "src/tokenizer/load_gguf.c": TOKENIZERS,
    "src/tokenizer/load_json.c": TOKENIZERS,
    "src/tokenizer/load_sentencepiece.c": TOKENIZERS,
    "src/tokenizer/load_steps.c": TOKENIZERS,
    "src/tokenizer/parts.c": TOKENIZERS,
    "src/tokenizer/api.c": TOKENIZERS,
    "src/session/kv/attention.c": GOLDEN,
    "src/session/linear/ffn.c": GOLDEN,
    "src/session/pass.c": GOLDEN,
    "src/session/embed.c": GOLDEN,
    "src/session/weights/mapped.c": GOLDEN,
    "src/session/linear/float.c": GOLDEN,
    "src/session/linear/int8.c": "tests/session/test_npu.c",
    "src/session/linear/sparse.c": "tests/session/test_predict.c",
    "src/generate/options.c": "tests/generate/test_generate.c",
    "src/session/roofline.c": COMMANDS,  # bench
    "src/hub/web.c": PULL,
    "src/hub/pull.c": PULL,
    "src/hub/blocks.c": PULL,
    "src/hub/fetch.c": PULL,
    "src/hub/store.c": PULL,
}


class Report:
    def __init__(self, root):
        self.root, self.count = root, 0

    def add(self, path, line, text):
        self.count += 1
        print(f"{pathlib.Path(path).relative_to(self.root)}:{line}: {text}")


def read_allowances(root):
    """{path or path:function: limit} from lines "PATH[:FUNCTION] LIMIT REASON"."""
    allowed = {}
    path = root / "scripts" / "style_allow.txt"
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.strip() and not line.startswith("#"):
            name, limit, reason = line.split(None, 2)
            assert reason, line
            allowed[name] = int(limit)
    return allowed


def source_files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            parts = path.relative_to(root).parts
            if path.is_file() and "corpus" not in parts and "__pycache__" not in parts:
                if path.suffix in TEXT or (folder in ("scripts", ".ci") and not path.suffix):
                    yield path


def blank_comments_and_strings(text):
    """The same text with comments and literals as blanks; lines stay where they are."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def check_text(report, path, text, allowed):
    lines = text.splitlines()
    name = path.relative_to(report.root).as_posix()
    if path.suffix not in (".txt", ".in") and not any(
            "SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
        report.add(path, 1, "no SPDX line")
    limit = allowed.get(name, MAX_FILE)
    if len(lines) > limit and not path.stem.endswith("_tables"):
        report.add(path, len(lines), f"{len(lines)} lines, at most {limit}")
    unfinished = re.compile(r"\b(" + "TO" + "DO|FIX" + "ME|XX" + r"X)\b")
    for number, line in enumerate(lines, 1):
        if "\t" in line and path.name != "Makefile":
            report.add(path, number, "a tab")
        if line != line.rstrip():
            report.add(path, number, "blanks at the end")
        if len(line) > MAX_COLUMNS and not path.stem.endswith("_tables"):
            report.add(path, number, f"{len(line)} columns, at most {MAX_COLUMNS}")
        if unfinished.search(line):
            report.add(path, number, "unfinished work belongs into an issue")
    if text and not text.endswith("\n"):
        report.add(path, len(lines), "no newline at the end")


def functions(code):
    """(name, first line, last line) of each function of formatted code without comments."""
    depth, head, first = 0, "", 0
    for number, line in enumerate(code.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        if depth == 0 and line.strip():
            if not head:
                first = number
            head += " " + line.strip()
        depth += line.count("{") - line.count("}")
        if depth == 0 and head.endswith((";", "}", ")")) or (depth == 0 and "}" in line):
            match = re.search(r"(\w+)\s*\(", head)
            if "}" in line and match and "{" in head and "=" not in head.split("{")[0]:
                if not re.match(r"\s*(static\s+)?(const\s+)?(struct|enum|union)\s+\w*\s*{", head):
                    yield match.group(1), first, number
            if "{" in head or head.endswith(";"):
                head = ""


def check_functions(report, path, code, allowed):
    name = path.relative_to(report.root).as_posix()
    for function, first, last in functions(code):
        limit = allowed.get(f"{name}:{function}", MAX_FUNCTION)
        if last - first + 1 > limit:
            report.add(path, first, f"{function}: {last - first + 1} lines, at most {limit}")


def check_includes(report, path, text):
    parts = path.relative_to(report.root).parts
    if parts[0] != "src" or len(parts) < 3:
        return
    module = parts[1]
    if module not in LAYERS:
        report.add(path, 1, f"the folder {module} has no place in the layers")
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not match or match.group(1) == "stint.h":
            continue
        included = match.group(1).split("/")[0]
        if module == "cli" and match.group(1) == BEYOND_API.get(path.name):
            continue
        if module == "cli" and included not in ("cli", "hub"):
            report.add(path, number, f"cli talks to stint.h and hub, not to {match.group(1)}")
        elif included not in LAYERS:
            report.add(path, number, f"include by folder and name, not {match.group(1)}")
        elif LAYERS.index(included) > LAYERS.index(module):
            report.add(path, number, f"{module} stands below {included}")
        elif included == module:
            check_rooms(report, path, number, match.group(1))


def check_rooms(report, path, number, included):
    """An include within one folder: its rooms have an order as well."""
    room, other = path.relative_to(report.root).parts[2], included.split("/")[1]
    rooms = ROOMS.get(included.split("/")[0], ())
    if room in rooms and other in rooms and rooms.index(other) > rooms.index(room):
        report.add(path, number, f"{room} stands below {other}")


def check_calls(report, path, code):
    parts = path.relative_to(report.root).parts
    if parts[0] != "src":
        return
    names = UNSAFE if parts[1] == "cli" else UNSAFE + " " + ENDS_OR_PRINTS
    call = re.compile(r"(?<![\w.>])(" + "|".join(names.split()) + r")\s*\(")
    for number, line in enumerate(code.splitlines(), 1):
        match = call.search(line)
        if match:
            report.add(path, number, f"{match.group(1)} must not be called here")
        if "_tile_load" in line and path.name != "amx_tile.h":
            report.add(path, number, "tiles are loaded by amx_tile.h, which orders memory")
        if parts[1] != "cli" and re.search(r"\b(stdout|stderr)\b", line):
            report.add(path, number, "the library prints nothing")


def check_tests(report):
    root = report.root
    for path in sorted((root / "src").rglob("*.c")):
        module, stem = path.relative_to(root).parts[1], path.stem
        name = path.relative_to(root).as_posix()
        if module == "cli" or stem.endswith("_tables"):
            continue
        family = ISA.sub("", stem)
        stems = {stem, family}
        if family != stem:  # linear_bf16_amx is checked with linear
            stems.add(family.split("_")[0])
        wanted = [f"{kind}_{x}.c" for kind in ("test", "check") for x in stems]
        test = COVERED.get(name) or next(
            (x for folder, x in WALKED.items() if fnmatch.fnmatch(name, f"{folder}*.c")), None)
        if test:
            if not (root / test).exists():
                report.add(path, 1, f"its test {test} is not there")
        elif not any((root / "tests" / module / x).exists() for x in wanted):
            report.add(path, 1, f"no tests/{module}/test_{family}.c or check_{family}.c")


def check_header_alone(report):
    header = report.root / "include" / "stint.h"
    for compiler, language, standard in (("gcc", "c", "c17"), ("g++", "c++", "c++17")):
        if not shutil.which(compiler):
            continue
        done = subprocess.run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-pedantic",
                               "-Werror", "-fsyntax-only", "-x", language, header],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            report.add(header, 1, f"does not compile alone as {standard}:\n{done.stderr}")


def symbols(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [line.split() for line in done.stdout.splitlines()]


def check_symbols(report, build):
    shared, archive = build / "libstint.so", build / "libstint.a"
    if not shutil.which("nm") or not archive.exists():
        return
    listings = [(archive, ["nm", "-g", "--defined-only"], ("stint_", "st_"))]
    if shared.exists():
        listings.append((shared, ["nm", "-D", "--defined-only"], ("stint_",)))
    for path, command, prefixes in listings:
        for row in symbols(command + [path]):
            if len(row) == 3 and not row[2].startswith(prefixes):
                report.add(report.root / "CMakeLists.txt", 1, f"{path.name} exports {row[2]}")
    member = ""
    for row in symbols(["objdump", "-t", archive]):
        if len(row) > 1 and row[1:3] == ["file", "format"]:
            member = row[0].removesuffix(":").removesuffix(".o")
        elif len(row) >= 5 and re.match(r"\.t?(data|bss)$", row[-3]) and row[-1][0] != ".":
            if member not in STATE:
                report.add(report.root / "CMakeLists.txt", 1,
                           f"{member} keeps state in '{row[-1]}': put it into a handle")


def check_subject(report):
    if not shutil.which("git"):
        return
    done = subprocess.run(["git", "-C", report.root, "log", "-1", "--no-merges", "--format=%s"],
                          capture_output=True, text=True, check=False)
    subject = done.stdout.strip()
    if subject and (len(subject) > MAX_SUBJECT or not re.match(r"[a-z0-9_/-]+: [a-z]", subject)):
        report.add(report.root / ".git", 1, f"the last commit's subject is not 'area: imperative' "
                   f"of at most {MAX_SUBJECT} characters: {subject}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    here = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=here)
    parser.add_argument("--build", type=pathlib.Path)
    options = parser.parse_args()
    root = options.root.resolve()
    build = options.build or pathlib.Path(os.environ.get("STINT_BUILD_DIR", root / "build"))
    report, allowed, n_files = Report(root), read_allowances(root), 0
    for path in source_files(root):
        text = path.read_text(encoding="utf-8")
        n_files += 1
        check_text(report, path, text, allowed)
        if path.suffix in CODE:
            code = blank_comments_and_strings(text)
            check_functions(report, path, code, allowed)
            check_includes(report, path, text)
            check_calls(report, path, code)
    check_tests(report)
    check_header_alone(report)
    check_symbols(report, build)
    check_subject(report)
    print(f"style: {n_files} files, {report.count} violations")
    return 1 if report.count else 0


if __name__ == "__main__":
    sys.exit(main())
