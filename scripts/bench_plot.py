#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws bench/history.jsonl as bench/history.svg: one panel per figure, one line per CPU and
thread count, a point per measurement in the order of the file. Hovering a point names it."""
import argparse
import html
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
WIDTH, PANEL, LEFT, RIGHT, TOP, BOTTOM = 860, 170, 64, 24, 30, 26


def series_of(history):
    """{panel: {CPU: [(position, value, tooltip)]}}, panels in the order they first appear."""
    panels = {}
    for position, line in enumerate(history):
        machine = f"{line['cpu']}, {line['threads']} threads"
        for model, figure in line["models"].items():
            rows = [(f"{model}: prefill of {n} tokens", speed, figure["prefill_fraction"])
                    for n, speed in figure["prefill"].items()]
            if figure["decode"] is not None:
                rows.append((f"{model}: decode", figure["decode"], figure["decode_fraction"]))
            for name, speed, share in rows:
                tip = f"{line['commit']} {line['date'][:10]}: {speed:.1f} tokens/s"
                if "decode" in name:
                    tip += f", {100 * share:.0f} % of the memory's limit"
                panels.setdefault(name, {}).setdefault(machine, []).append((position, speed, tip))
    return panels


def round_top(value):
    """The least of 1, 2, 2.5, 5, 10 times a power of ten that is not below the value."""
    power = 1.0
    while power * 10 < value:
        power *= 10
    while power > value > 0:
        power /= 10
    return next((f * power for f in (1, 2, 2.5, 5, 10) if f * power >= value), 1.0)


def draw_panel(name, machines, colors, n_positions, offset):
    top = round_top(max(value for points in machines.values() for _, value, _ in points))
    height = PANEL - TOP - BOTTOM
    step = (WIDTH - LEFT - RIGHT) / max(1, n_positions - 1)

    def x(position):
        return LEFT + position * step if n_positions > 1 else (LEFT + WIDTH - RIGHT) / 2

    def y(value):
        return offset + TOP + height * (1 - value / top)

    out = [f'<text x="{LEFT}" y="{offset + TOP - 10}" class="name">{html.escape(name)}</text>']
    for part in range(3):
        value = top * part / 2
        out.append(f'<path class="grid" d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" class="mark">{value:g}</text>')
    for machine, points in machines.items():
        path = " ".join(f"{x(p):.1f},{y(v):.1f}" for p, v, _ in points)
        out.append(f'<polyline points="{path}" stroke="{colors[machine]}"/>')
        for position, value, tip in points:
            out.append(f'<circle cx="{x(position):.1f}" cy="{y(value):.1f}" r="3.5" '
                       f'fill="{colors[machine]}"><title>{html.escape(tip)}</title></circle>')
    return out


def draw(history):
    panels = series_of(history)
    machines = list(dict.fromkeys(m for panel in panels.values() for m in panel))
    colors = {machine: COLORS[i % len(COLORS)] for i, machine in enumerate(machines)}
    head = 44 + 20 * len(machines)
    height = head + PANEL * len(panels) + 10
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
           "<style>.grid{stroke:#ddd}.mark{text-anchor:end;fill:#666}.name{font-weight:bold}"
           "polyline{fill:none;stroke-width:2}</style>",
           f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
           f'<text x="{LEFT}" y="26" font-size="15">tokens per second, '
           f"{html.escape(history[0]['commit'])} to {html.escape(history[-1]['commit'])}</text>"]
    for i, machine in enumerate(machines):
        out.append(f'<circle cx="{LEFT + 5}" cy="{44 + 20 * i}" r="5" fill="{colors[machine]}"/>')
        out.append(f'<text x="{LEFT + 16}" y="{48 + 20 * i}">{html.escape(machine)}</text>')
    for i, (name, lines) in enumerate(panels.items()):
        out += draw_panel(name, lines, colors, len(history), head + PANEL * i)
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--history", type=pathlib.Path, default=ROOT / "bench" / "history.jsonl")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=None)
    options = parser.parse_args()
    output = options.output or options.history.with_suffix(".svg")
    lines = options.history.read_text().splitlines() if options.history.exists() else []
    history = [json.loads(line) for line in lines if line.strip()]
    if not history:
        sys.exit(f"bench_plot: {options.history} holds no measurement; make one with: make bench")
    output.write_text(draw(history))
    print(f"{output}: {len(history)} measurements")


if __name__ == "__main__":
    main()
