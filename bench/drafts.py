#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What drafts gain on prompts of several kinds: one process, two sessions, the same prompts with
and without drafts, in turn. Prints markdown. For the table of docs/BENCHMARKS.md:

    PYTHONPATH=bindings/python STINT_LIBRARY=build/libstint.so bench/drafts.py MODEL DATA

DATA holds mt_bench, humaneval and spec_bench. Answers are greedy and must be the same token by
token. A gain is the time of a decoded token without drafts over that with them: elapsed, and of
all processors, which says more on a machine that others use. "quarters" are those of the prompts'
gains; "worst" is the prompt that lost most. With --rounds each prompt is answered so many times by
each, in turn, and the medians of its times count: "worst" of one round is mostly chance."""
import argparse
import itertools
import json
import pathlib
import re
import resource
import statistics

import stint

QUOTE = "Summarize this article. Quote its most important sentences word for word.\n\n"
EDIT = ("Here is a Python function. Write the whole function again with its parameter `{old}` "
        "renamed to `{new}`, and nothing else changed.\n\n```python\n{code}```")


def chats(data):
    for line in (data / "mt_bench" / "question.jsonl").read_text("utf-8").splitlines():
        yield json.loads(line)["turns"][0]


def edits(data):
    for line in (data / "humaneval" / "HumanEval.jsonl").read_text("utf-8").splitlines():
        item = json.loads(line)
        code = item["prompt"] + item["canonical_solution"]
        found = re.search(rf"def {item['entry_point']}\((\w+)", code)
        if found and len(code) < 1500:
            yield EDIT.format(old=found[1], new="first_value", code=code)


def summaries(data):
    for line in (data / "spec_bench" / "question.jsonl").read_text("utf-8").splitlines():
        item = json.loads(line)
        if item["category"] == "summarization":
            yield QUOTE + re.sub(r"^Summarize: *", "", item["turns"][0])[:3000]


KINDS = {"chat": chats, "code edit": edits, "summary with quotes": summaries}


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Side:
    """A session with its figures, prompt by prompt."""

    def __init__(self, model, options, **drafts):
        self.session = model.session(threads=options.threads, context=options.context,
                                     schedule=options.schedule, **drafts)
        self.seconds, self.cpu, self.results, self.ids = [], [], [], []
        self.rounds, self.same = [], True

    def answer(self, ids, tokens):
        # The prompt's last token is the first of the step, so that only decoding is measured.
        self.session.truncate(0)
        self.session.append(ids[:-1])
        before = processor_seconds()
        answer, = self.session.answers(1, ids[-1:], max_tokens=tokens,
                                       sampling=stint.Sampling(temperature=0.0))
        n = max(1, len(answer.ids))
        cpu = (processor_seconds() - before) / n
        seconds = (answer.result.decode_seconds + answer.result.prefill_seconds) / n
        self.rounds.append((cpu, seconds))
        if len(self.results) == len(self.cpu):
            self.results.append(answer.result)
            self.ids.append(answer.ids)
        self.same &= answer.ids == self.ids[-1]

    def end_prompt(self):
        cpu, seconds = zip(*self.rounds)
        self.cpu.append(statistics.median(cpu))
        self.seconds.append(statistics.median(seconds))
        self.rounds = []


def share(results, name, of):
    return sum(getattr(r, name) for r in results) / max(1, sum(getattr(r, of) for r in results))


def row(kind, plain, drafted):
    gains = [a / b for a, b in zip(plain.seconds, drafted.seconds)]
    cpu = [a / b for a, b in zip(plain.cpu, drafted.cpu)]
    low, middle, high = statistics.quantiles(gains, n=4)
    same = sum(a == b for a, b in zip(plain.ids, drafted.ids)) * (plain.same and drafted.same)
    steps = share(drafted.results, "generated_tokens", "decode_steps")
    taken = share(drafted.results, "accepted_tokens", "drafted_tokens")
    drafts = share(drafted.results, "drafted_tokens", "generated_tokens")
    selfs = share(drafted.results, "self_drafted_tokens", "drafted_tokens")
    total = sum(a.decode_seconds for a in plain.results) / max(
        1e-9, sum(a.decode_seconds for a in drafted.results))
    return (f"| {kind} | {middle:.2f} ({low:.2f} to {high:.2f}) | {min(gains):.2f} | "
            f"{total:.2f} | {statistics.median(cpu):.2f} | {steps:.2f} | {100 * drafts:.0f} % | "
            f"{100 * selfs:.0f} % | {100 * taken:.0f} % | {same} of {len(gains)} |")


def kinds_of(text):
    kinds = text.split(",")
    for kind in kinds:
        if kind not in KINDS:
            raise argparse.ArgumentTypeError(
                f"no prompts are of kind '{kind}'; kinds are: {', '.join(KINDS)}")
    return kinds


def tokenized(model, options, kind):
    """The prompts of a kind that leave room for an answer, each with its number."""
    prompts = itertools.islice(KINDS[kind](options.data), options.prompts)
    for i, prompt in enumerate(prompts):
        ids = model.tokenize(model.chat_format([{"role": "user", "content": prompt}]))
        if len(ids) + options.tokens + 16 <= options.context:
            yield i, ids


def measure(model, options, kind):
    plain = Side(model, options)
    drafted = Side(model, options, drafts=options.drafts, draft_bits=options.draft_bits)
    sides = [plain, drafted]
    for i, ids in tokenized(model, options, kind):
        for turn in range(i, i + options.rounds):
            for side in sides if turn % 2 else reversed(sides):
                side.answer(ids, options.tokens)
        for side in sides:
            side.end_prompt()
        if options.each:
            print(f"{kind} {i}: {plain.seconds[-1] / drafted.seconds[-1]:.2f}", flush=True)
    print(row(kind, plain, drafted), flush=True)
    for side in sides:
        side.session.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--kinds", type=kinds_of, default=",".join(KINDS),
                        help="default: %(default)s")
    parser.add_argument("--prompts", type=int, default=50, help="of each kind")
    parser.add_argument("--rounds", type=int, default=1, help="answers to each prompt")
    parser.add_argument("--each", action="store_true", help="a line for each prompt first")
    parser.add_argument("--tokens", type=int, default=128, help="longest answer")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--drafts", type=int, default=15)
    parser.add_argument("--draft-bits", type=int, default=4)
    parser.add_argument("--schedule")
    parser.add_argument("--nested", help="package whose nested weights draft, of a checkpoint")
    options = parser.parse_args()
    print("| | gain, median (quarters) | worst | of all tokens | processor time | tokens a step | "
          "drafted | of these by the weights | right | same text |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    with stint.Model.open(options.model, nested=options.nested) as model:
        for kind in options.kinds:
            measure(model, options, kind)


if __name__ == "__main__":
    main()
