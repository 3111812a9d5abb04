# SPDX-License-Identifier: BSD-3-Clause
"""Results of a comparison: statistics, tables, JSON, and a picture by gnuplot."""

import itertools
import json
import os
import platform
import shutil
import statistics
import subprocess

PLACES = ("near", "far")  # of the two CPUs, by the round trip of a cache line


def machine():
    model = ""
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(),
            "machine": platform.machine()}


def spread(values):
    """Median, least and greatest, or None without values."""
    values = [v for v in values if v is not None]
    if not values:
        return None
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def ratios(ours, theirs):
    """Ours over theirs, round by round."""
    return spread([a / b if a is not None and b else None for a, b in zip(ours, theirs)])


def short(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(s):
    return f"{short(s['median'])} ({short(s['min'])}-{short(s['max'])})" if s else "-"


# ---- chunks: one measurement of one side, by where the CPUs were ----

def place_of(result, chunk):
    """Near or far: as the spin round trips before and after it say.  None: moved meanwhile."""
    is_far = [spin >= result["far_ns"] for spin in chunk["spin_ns"]]
    return None if is_far[0] != is_far[1] else PLACES[is_far[0]]


def chunks_of(result, size, side):
    return result["chunks"][str(size)][side]


def all_chunks(result):
    return [chunk for size in result["sizes"] for side in result["sides"]
            for chunk in chunks_of(result, size, side)]


def values_at(result, size, side, place):
    """What the rounds gave, in order; None where it failed or was not measured in that place."""
    return [chunk["value"] if place_of(result, chunk) == place else None
            for chunk in chunks_of(result, size, side)]


def percentile(values, percent):
    """Between two of the values, in proportion."""
    values = sorted(values)
    at = (len(values) - 1) * percent / 100
    low = values[int(at)]
    return low + (at - int(at)) * (values[min(int(at) + 1, len(values) - 1)] - low)


def less_is_better(result):
    return result["unit"] in ("us", "ms", "s", "MB")


def summary(result, values):
    """The better quartile, the better tenth, the median; None without values.  A process that loses
    its CPU is only ever slower, so the better quartile tells the software, not the machine."""
    values = [v for v in values if v is not None]
    if not values:
        return None
    percents = (25, 10, 50) if less_is_better(result) else (75, 90, 50)
    return dict(zip(("good", "best", "median"), (percentile(values, p) for p in percents)))


def summary_cell(s):
    return f"{short(s['good'])} ({short(s['best'])}, {short(s['median'])})" if s else "-"


def ratio(result, ours, theirs):
    """Of the better quartiles, ours over theirs; beside it the quartiles from round to round."""
    both = [summary(result, values) for values in (ours, theirs)]
    rounds = [a / b for a, b in zip(ours, theirs) if a is not None and b]
    if None in both or not both[1]["good"]:
        return None
    quartiles = [percentile(rounds, p) for p in (25, 75)] if rounds else []
    return {"ratio": both[0]["good"] / both[1]["good"], "quartiles": quartiles}


def ratio_cell(r):
    if not r:
        return "-"
    quartiles = "-".join(short(q) for q in r["quartiles"])
    return short(r["ratio"]) + (f" ({quartiles})" if quartiles else "")


def spins(result):
    """In words: how many chunks were where, and how far apart the CPUs were."""
    chunks = all_chunks(result)
    words = []
    for place in PLACES:
        there = [spin for chunk in chunks if place_of(result, chunk) == place
                 for spin in chunk["spin_ns"]]
        if there:
            words.append(f"{len(there) // 2} chunks {place} (spin round trip {cell(spread(there))} ns)")
    moved = sum(place_of(result, chunk) is None for chunk in chunks)
    return ", ".join(words + [f"{moved} left out: the CPUs moved meanwhile"] * bool(moved))


def row_name(result, size):
    if "row_unit" in result:
        return f"{size} {result['row_unit']}"
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def rows(result):
    """Each size and place that has been measured."""
    for size in result["sizes"]:
        for place in PLACES:
            values = {s: values_at(result, size, s, place) for s in result["sides"]}
            if any(v is not None for side in values.values() for v in side):
                yield size, place, values


def table(result):
    """Markdown: one row a size and place, one column a side, then Weft's ratio to each other one."""
    sides = result["sides"]
    weft = result["weft"]
    others = [s for s in sides if s != weft]
    better = "below 1 is better" if less_is_better(result) else "above 1 is better"
    head = [f"{result['unit']}"] + sides + [f"{weft} / {s}" for s in others]
    lines = [f"### {result['name']}", "",
             f"{result['what']}; {result['rounds']} rounds: {spins(result)}. Better quartile (better "
             f"tenth, median) of the chunks; ratios of better quartiles (quartiles from round to "
             f"round): {better}.", "",
             "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for size, place, values in rows(result):
        row = [f"{row_name(result, size)}, {place}"]
        row += [summary_cell(summary(result, values[s])) for s in sides]
        row += [ratio_cell(ratio(result, values[weft], values[s])) for s in others]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def verdict(result):
    """Each side of Weft's against the same of the other build, as a factor of its time."""
    lines = []
    for size, place, values in rows(result):
        for side in result["sides"]:
            before = f"{side} before"
            if before not in values:
                continue
            pair = [values[side], values[before]]
            r = ratio(result, *(pair if less_is_better(result) else reversed(pair)))
            lines.append(f"against: {result['name']}, {side}, {row_name(result, size)}, {place}: "
                         f"{ratio_cell(r)}")
    return "\n".join(lines)


def setup_table(result):
    head = ["what", "value"] + ["before", "factor"] * ("before" in result) + ["unit"]
    lines = ["### setup", "",
             f"Median (least-greatest) of {result['rounds']} rounds.", "",
             "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for number, (what, unit, values) in enumerate(result["rows"]):
        cells = [what, cell(spread(values))]
        if "before" in result:
            before = result["before"][number][2]
            cells += [cell(spread(before)), cell(ratios(values, before))]
        lines.append("| " + " | ".join(cells + [unit]) + " |")
    return "\n".join(lines)


def save(folder, result):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, result["name"] + ".json")
    with open(path, "w") as f:
        json.dump(dict(result, machine=machine()), f, indent=1)
        f.write("\n")
    return path


def draw(folder, result):
    """A picture NAME.svg, if gnuplot is here; its data stay beside it."""
    if not shutil.which("gnuplot"):
        return None
    base = os.path.join(folder, result["name"])
    plots = []
    with open(base + ".dat", "w") as f:
        for side, place in itertools.product(result["sides"], PLACES):
            points = [(size, summary(result, values_at(result, size, side, place)))
                      for size in result["sizes"]]
            points = [(size, s) for size, s in points if s]
            if not points:
                continue
            f.write(f"# {side}, {place}: size good least greatest\n")
            for size, s in points:
                f.write(f"{size} {s['good']} {min(s.values())} {max(s.values())}\n")
            f.write("\n\n")
            plots.append(f"'{base}.dat' index {len(plots)} using 1:2:3:4 with yerrorlines "
                         f"title '{side}, {place}' noenhanced")
    if not plots:
        return None
    unit = {"us": "us, one way", "s": "s"}.get(result["unit"], "GB/s")
    script = (f"set terminal svg size 800,500\nset output '{base}.svg'\nset logscale xy\n"
              f"set logscale x 2\nset key left top\nset xlabel 'bytes'\nset ylabel '{unit}'\n"
              f"set title '{result['name']}' noenhanced\nset grid\nplot " + ", ".join(plots))
    done = subprocess.run(["gnuplot"], input=script + "\n", text=True)
    return base + ".svg" if done.returncode == 0 else None
