# SPDX-License-Identifier: BSD-3-Clause
"""Results of a comparison: statistics, tables, JSON, and a picture by gnuplot."""

import json
import os
import platform
import shutil
import statistics
import subprocess


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


def less_is_better(result):
    return result["unit"] in ("us", "ms", "s", "MB")


def row_name(result, size):
    if "row_unit" in result:
        return f"{size} {result['row_unit']}"
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def table(result):
    """Markdown: one row a size, one column a side, then Weft's ratio to each other side."""
    sides = result["sides"]
    weft = result["weft"]
    others = [s for s in sides if s != weft]
    better = "below 1 is better" if less_is_better(result) else "above 1 is better"
    head = [f"{result['unit']}"] + sides + [f"{weft} / {s}" for s in others]
    lines = [f"### {result['name']}", "",
             f"{result['what']}; median (least-greatest) of {result['rounds']} rounds; spin round "
             f"trip {cell(spread(result['spin_ns']))} ns; ratios: {better}.", "",
             "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for size in result["sizes"]:
        values = result["values"][str(size)]
        row = [row_name(result, size)] + [cell(spread(values[s])) for s in sides]
        row += [cell(ratios(values[weft], values[s])) for s in others]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def verdict(result):
    """Each side of Weft's against the same of the other build, as a factor of its time."""
    lines = []
    for size in result["sizes"]:
        values = result["values"][str(size)]
        for side in result["sides"]:
            before = f"{side} before"
            if before not in values:
                continue
            pair = [values[side], values[before]]
            s = ratios(*(pair if less_is_better(result) else reversed(pair)))
            lines.append(f"against: {result['name']}, {side}, {row_name(result, size)}: {cell(s)}")
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
        for index, side in enumerate(result["sides"]):
            f.write(f"# {side}: size median min max\n")
            for size in result["sizes"]:
                s = spread(result["values"][str(size)][side])
                if s:
                    f.write(f"{size} {s['median']} {s['min']} {s['max']}\n")
            f.write("\n\n")
            plots.append(f"'{base}.dat' index {index} using 1:2:3:4 with yerrorlines "
                         f"title '{side}' noenhanced")
    unit = {"us": "us, one way", "s": "s"}.get(result["unit"], "GB/s")
    script = (f"set terminal svg size 800,500\nset output '{base}.svg'\nset logscale xy\n"
              f"set logscale x 2\nset key left top\nset xlabel 'bytes'\nset ylabel '{unit}'\n"
              f"set title '{result['name']}' noenhanced\nset grid\nplot " + ", ".join(plots))
    done = subprocess.run(["gnuplot"], input=script + "\n", text=True)
    return base + ".svg" if done.returncode == 0 else None
