# SPDX-License-Identifier: Apache-2.0
"""Tables and drawings of what bench/schedules.py compares. A point has scores and bits, prompt by
prompt, greater scores being better, and a label."""
import json
import math
import pathlib


# ---- Statistics

def mean(values):
    return sum(values) / len(values)


def error(values):
    middle = mean(values)
    return math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1)
                     / len(values))


def bound(value, standard_error, n):
    """The true mean is below it with a certainty of 95 %, as `solve` has it: Student's t."""
    return value + (1.645 + 1.524 / (n - 1) + 1.42 / (n - 1) ** 2) * standard_error


def mixture_at(points, bits):
    """Scores of the best mixture of two uniform precisions, selected at random for each prompt,
    that has these bits on average; None outside them."""
    best = None
    for low in points:
        for high in points:
            a, b = low["average_bits"], high["average_bits"]
            if not a <= bits <= b:
                continue
            weight = (bits - a) / (b - a) if b > a else 0.0
            scores = [x + weight * (y - x) for x, y in zip(low["scores"], high["scores"])]
            if best is None or mean(scores) > mean(best):
                best = scores
    return best


def oracle_at(points, bits):
    """The best mean score if each prompt takes the point that suits it, at these bits on average:
    the least bound over all prices of a bit."""
    n = len(points[0]["scores"])
    prices = [0.0] + [10 ** (power / 8) for power in range(-40, 9)]
    return min(sum(max(p["scores"][i] - price * p["bits"][i] for p in points)
                   for i in range(n)) / n + price * bits for price in prices)


def label(point, high, low):
    """What a point does: "static: 4, 3 from step 12", "entropy: 4, 3 (epsilon)"."""
    simple = {"int8": "INT8", "random": f"random switch, {high} to {low}",
              "random steps": f"{high} or {low} at random", "in turn": f"{high} and {low} in turn",
              "high first": f"{high} in the first third, then {low}",
              "high in the middle": f"{high} in the middle third",
              "high last": f"{high} in the last third"}
    if point["name"] in simple:
        return simple[point["name"]]
    decode = point["schedule"] and point["schedule"]["decode"]
    if point["name"] == "uniform":
        return f"uniform {decode[0][0]}"
    stem = pathlib.Path(point["name"]).stem  # of a file
    kind, _, choice = stem.partition("-")
    if kind == "learned":
        return f"learned: {choice.replace('-', ', ')}"
    if kind not in ("static", "entropy", "margin"):
        return stem
    steps = [f"{bits} from step {start}" if start else f"{bits}" for bits, start in decode]
    return f"{kind}: {', '.join(steps)}" + (" (epsilon)" if choice == "epsilon" else "")


SIMPLE = ("uniform", "int8", "random", "random steps", "in turn")


def simple_mixture(point, points):
    """Scores of the best mixture of other uniform and random points at this one's bits."""
    base = [other for other in points if other["name"] in SIMPLE and other is not point]
    return mixture_at(base, point["average_bits"])


def gain_of(point, points):
    """(mean, standard error) of the gain over the best simple mixture; None without one."""
    simple = simple_mixture(point, points)
    if simple is None or point["name"] == "int8":
        return None
    gains = [x - y for x, y in zip(point["scores"], simple)]
    return mean(gains), error(gains)


def cell(point, points, sign):
    """The quality of one task, and in brackets the gain in standard errors."""
    text = f"{sign * mean(point['scores']):.4f} +- {error(point['scores']):.4f}"
    gain = gain_of(point, points)
    return text + (f" ({gain[0] / gain[1]:+.1f})" if gain and gain[1] else "")


def row_of(i, columns, sign):
    """Point i in all columns, the last of which has all prompts: bits, quality, the gain, and
    what the best point for each prompt would have."""
    point, points = columns[-1][i], columns[-1]
    row = [point["label"], f"{point['average_bits']:.2f}"]
    row += [cell(column[i], column, sign) for column in columns]
    gain = gain_of(point, points)
    if not gain:
        return row + ["", ""]
    best = oracle_at([other for other in points if other["name"] != "reference"],
                     point["average_bits"])
    return row + [f"{gain[0]:+.4f} +- {gain[1]:.4f}", f"{sign * best:.4f}"]


def table(columns, heads, sign):
    cells = [f"{head}, {len(column[-1]['scores'])} prompts" for head, column in zip(heads, columns)]
    print("\n| | bits | " + " | ".join(cells) + " | gain | best per prompt |\n"
          + "|---" * (len(cells) + 4) + "|")
    for i, point in enumerate(columns[-1]):
        if point["name"] != "reference":
            print("| " + " | ".join(row_of(i, columns, sign)) + " |")
    print()


# ---- Plot

FAMILIES = {"static": "o", "entropy": "s", "margin": "^", "learned": "P", "DNS: ": "X"}


def family(point):
    return next((name for name in FAMILIES if point["label"].startswith(name)), None)


def plot(points, sign, path):
    """Bits against quality of all prompts: points with two standard errors, the line of the best
    simple mixtures, and that of the best point for each prompt."""
    from matplotlib import pyplot  # only who draws needs it

    pyplot.rcParams["svg.fonttype"] = "none"  # text stays text: a small file
    figure, axes = pyplot.subplots(figsize=(8, 5))
    free = [point for point in points if point["name"] != "reference"]
    simple = [point for point in free if point["name"] in SIMPLE]
    low, high = (edge(point["average_bits"] for point in simple if point["name"] != "int8")
                 for edge in (min, max))
    bits = [low + (high - low) * i / 200 for i in range(201)]
    axes.plot(bits, [sign * mean(mixture_at(simple, at)) for at in bits], color="0.5",
              label="best mixture of uniform and random")
    axes.plot(bits, [sign * oracle_at(free, at) for at in bits], color="0.5", linestyle=":",
              label="best for each prompt")
    shown = [point for point in free if low <= point["average_bits"] <= high]
    groups = [(name.strip(": "), mark, [p for p in shown if family(p) == name])
              for name, mark in FAMILIES.items()]
    groups += [("uniform, random, thirds", ".", [p for p in shown if family(p) is None])]
    for name, mark, group in groups:
        if group:
            axes.errorbar([p["average_bits"] for p in group],
                          [sign * mean(p["scores"]) for p in group],
                          yerr=[2 * error(p["scores"]) for p in group], fmt=mark, label=name)
    axes.set_yscale("log")
    axes.set_xlabel("bits of a weight, on average")
    axes.set_ylabel("divergence from the reference" if sign < 0 else "quality")
    axes.legend()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


# ---- Shards

def weigh(curve, weight_bits):
    """Bits of each prompt as the weights truly have them, and their mean."""
    for point in curve:
        point["bits"] = [sum(n * weight_bits.get(bits, 0.0) for bits, n in enumerate(steps))
                         / max(1, sum(steps)) for steps in point["steps"]]
        point["average_bits"] = mean(point["bits"])
    return curve


def identity(point):
    """The same in all shards, also if the files of schedules were moved."""
    return pathlib.PurePath(point["name"]).name, json.dumps(point["schedule"])


def join(curves):
    """The points that all of these shards have as one curve, without prompts that had no step."""
    joined = []
    shards = [{identity(point): point for point in curve} for curve in curves]
    for key in shards[0]:
        if not all(key in shard for shard in shards):
            continue
        points = [shard[key] for shard in shards]
        one = {"name": points[0]["name"], "schedule": points[0]["schedule"]}
        for part in ("scores", "steps"):
            one[part] = [value for point in points for value in point[part]]
        joined.append(one)
    stepped = [any(sum(point["steps"][i]) for point in joined[1:])
               for i in range(len(joined[0]["scores"]))]
    for point in joined:
        for key in ("scores", "steps"):
            point[key] = [value for value, keep in zip(point[key], stepped) if keep]
    return joined


def signed(curve, sign):
    """Points whose greater scores are better."""
    return [{**point, "scores": [sign * score for score in point["scores"]]} for point in curve]
