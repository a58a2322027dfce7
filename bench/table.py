# SPDX-License-Identifier: BSD-2-Clause
"""Makes the table, bench.json and gnuplot's data of the lines "ROW LOOP DEVICES OURS OTHER" on stdin,
a line for each round. Arguments: the build directory, the load average at the start, the rounds, the
loops that were measured."""
import datetime
import json
import math
import platform
import statistics
import sys

LOOPS = ["uv", "libevent", "libev", "epoll", "poll"]


def at_most(bound):
    return f"ratio at most {bound}", lambda ours, other, ratio: ratio <= bound


def more(bound, unit):
    return f"at most {bound} {unit} more", lambda ours, other, ratio: ours - other <= bound


def below(bound, words):
    return words, lambda ours, other, ratio: ours <= bound


BETTER = ("ratio below 1", lambda ours, other, ratio: ratio < 1)
# row: its title with the number of devices (or the percentile) put in, and its goal
ROWS = {
    "instructions": ("instructions per event", more(120, "instructions")),
    "cpu": ("CPU time per event, {} devices (ns)", at_most(1.05)),
    "latency": ("latency p{} (ns)", at_most(1.05)),
    "thread": ("latency p{} against a dedicated thread (ns)", BETTER),
    "idle": ("wakeups a second, {} devices", below(2, "one a tick: at most 2")),
    "attach": ("attach, {} devices (CPU us each)", None),
    "memory": ("memory per device, {} devices (bytes)", more(1024, "bytes")),
    "fatal": ("detection of a fatal syndrome (ms)", below(500, "a tick: at most 500")),
    "freeze": ("detection of stalled firmware (ms)", below(3000, "before libmlx5's third miss: at most 3000")),
    "no-tick": ("detection by a dedicated thread, of a fatal syndrome (ms)", None),
    "eq-instructions": ("event queue: instructions per event", None),
    "eq-cpu": ("event queue: CPU time per event (ns)", None),
    "eq-rate": ("event queue: events a second", None),
}
# goals are for one device and for p99
WITHOUT_GOAL = {("cpu", "16"), ("cpu", "256"), ("latency", "50")}


SCALES = {"cpu": ["1", "16", "256"], "idle": ["1", "16", "256"], "attach": ["1", "16", "256"],
          "memory": ["1", "16", "256"], "latency": ["50", "99"], "thread": ["50", "99"]}


def number(text):
    value = None if text == "never" else float(text)
    if value is not None and not math.isfinite(value):
        sys.exit(f"a measurement has failed: {text!r}")
    return value


def check_complete(rounds, wanted, loops):
    """No row may be missing: a measurement that has failed leaves none."""
    for row in ROWS:
        where = loops if not row.startswith(("eq-", "no-tick")) else loops[:1]
        for scale in SCALES.get(row, ["1"]):
            for loop in where:
                got = len(rounds.get((row, scale, loop), []))
                if got < wanted:
                    sys.exit(f"{row} {scale} {loop}: {got} rounds of {wanted}")


def read_lines():
    rounds = {}
    for line in sys.stdin:
        words = line.split()
        if len(words) != 5:
            sys.exit(f"a measurement has failed: {line.strip()!r}")
        key = (words[0], words[2], words[1])
        rounds.setdefault(key, []).append((number(words[3]), number(words[4])))
    return rounds


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    parts = statistics.quantiles(values, n=4, method="inclusive")
    return parts[0], parts[2]


def make_row(row, scale, loop, rounds):
    title, goal = ROWS[row]
    if (row, scale) in WITHOUT_GOAL:
        goal = None
    ours = statistics.median(a for a, _ in rounds)
    others = [b for _, b in rounds if b is not None]
    ratios = [a / b for a, b in rounds if b]
    other = statistics.median(others) if others else None
    ratio = statistics.median(ratios) if ratios else None
    return {
        "name": title.format(scale).replace("1 devices", "1 device"),
        "loop": loop,
        "ours": round(ours, 1),
        "other": other and round(other, 1),
        "ratio": ratio and round(ratio, 3),
        "goal": goal[0] if goal else None,
        "met": bool(goal[1](ours, other, ratio)) if goal else None,
        "spread": [round(x, 3) for x in quartiles(ratios)] if ratios else None,
        "rounds": len(rounds),
    }


def order(key):
    row, scale, loop = key
    return list(ROWS).index(row), int(scale), LOOPS.index(loop)


def text(value, digits=1):
    return "never" if value is None else f"{value:.{digits}f}"


def print_row(row):
    spread = "{:.3f} to {:.3f}".format(*row["spread"]) if row["spread"] else ""
    goal = {True: "met: ", False: "NOT met: ", None: ""}[row["met"]] + (row["goal"] or "")
    print(f"{row['name']:54} {row['loop']:9} {text(row['ours']):>10} {text(row['other']):>10}"
          f" {text(row['ratio'], 3):>8}  {spread:18} {goal}")


def print_table(rows, load):
    print(f"{datetime.date.today()}, {platform.machine()}, Linux {platform.release()},"
          f" load average {load} at the start\n")
    print(f"{'medians of the rounds':54} {'loop':9} {'ours':>10} {'other':>10} {'ratio':>8}"
          f"  {'quartiles':18} goal")
    for row in rows:
        print_row(row)
    goals = [row["met"] for row in rows if row["met"] is not None]
    print(f"\n{sum(goals)} of {len(goals)} goals met")


def write_data(build, keys, rows):
    """A file for each kind of row: loop, devices, ours, other, ratio, its quartiles."""
    files = {}
    for (kind, scale, loop), row in zip(keys, rows):
        figures = [row["ours"], row["other"], row["ratio"], *(row["spread"] or [None, None])]
        words = [loop, scale] + ["nan" if x is None else str(x) for x in figures]
        files.setdefault(kind, []).append(" ".join(words))
    for kind, lines in files.items():
        with open(f"{build}/bench/{kind}.dat", "w", encoding="ascii") as out:
            out.write("\n".join(lines) + "\n")


def main():
    build, load, wanted, *loops = sys.argv[1:]
    rounds = read_lines()
    check_complete(rounds, int(wanted), loops)
    keys = sorted(rounds, key=order)
    rows = [make_row(*key, rounds[key]) for key in keys]
    print_table(rows, load)
    write_data(build, keys, rows)
    with open(f"{build}/bench.json", "w", encoding="ascii") as out:
        json.dump({"rows": rows}, out, indent=1)
        out.write("\n")


main()
