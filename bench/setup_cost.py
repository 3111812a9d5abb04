# SPDX-License-Identifier: BSD-3-Clause
"""What set-up costs: opening the device, starting weftd, an idle weftd, idle objects."""

import os
import time

import pair
import procs

IDLE_SECONDS = 5
TICKS = os.sysconf("SC_CLK_TCK")

ROWS = [  # key, what, unit
    ("cold_us", "device open, weftd started by it", "us"),
    ("open_us", "device open, weftd running", "us"),
    ("reg_4k_us", "ibv_reg_mr of one page, the first", "us"),
    ("dereg_4k_us", "ibv_dereg_mr of it", "us"),
    ("reg_us", "ibv_reg_mr of 32 GiB, untouched", "us"),
    ("dereg_us", "ibv_dereg_mr of it", "us"),
    ("reg_hot_4k_us", "ibv_reg_mr of 4 KiB, mapped", "us"),
    ("dereg_hot_4k_us", "ibv_dereg_mr of it", "us"),
    ("reg_hot_1m_us", "ibv_reg_mr of 1 MiB, mapped", "us"),
    ("dereg_hot_1m_us", "ibv_dereg_mr of it", "us"),
    ("t_reg_hot_4k_us", "ibv_reg_mr of 4 KiB, mapped, beside a thread", "us"),
    ("t_dereg_hot_4k_us", "ibv_dereg_mr of it", "us"),
    ("t_reg_hot_1m_us", "ibv_reg_mr of 1 MiB, mapped, beside a thread", "us"),
    ("t_dereg_hot_1m_us", "ibv_dereg_mr of it", "us"),
    ("qp_us", "ibv_create_cq and ibv_create_qp, 128/128", "us"),
    ("qp_init_us", "ibv_modify_qp to INIT", "us"),
    ("qp_kib", "memory touched by one more idle QP and CQ", "KiB"),
    ("weftd_rss_kib", "weftd, idle: resident", "KiB"),
    ("weftd_pss_kib", "weftd, idle: its share", "KiB"),
    ("weftd_cpu", f"weftd, idle {IDLE_SECONDS} s: CPU", "%"),
]


def run_cost(world, *args, share=None):
    """What verbs_cost prints, as a dict; share: the value of WEFT_SHARE."""
    env = ["env", "WEFT_SHARE=" + share] if share else []
    end = world.run(env + [os.path.join(world.build, "bench", "verbs_cost"), *args])
    if end.status != 0:
        raise pair.Failure(str(end))
    pairs = [line.split() for line in end.output.split("\n") if line]
    return {words[0]: float(words[1]) for words in pairs if len(words) == 2}


def weftd_pid():
    """The weftd that this world's programs left to us."""
    for pid in procs.children():
        if os.path.basename(procs.command_line(pid).split(" ")[0]) == "weftd":
            return pid
    raise pair.Failure("no weftd runs after a program ended")


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat") as f:
        words = f.read().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


def memory_kib(pid, key):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        for line in f:
            if line.startswith(key + ":"):
                return int(line.split()[1])
    raise pair.Failure(f"no {key} in smaps_rollup")


def measure(build):
    with pair.World(build) as world:
        values = {"cold_us": run_cost(world, "open")["open_us"]}
        values.update(run_cost(world))
        values.update(run_cost(world, "reg", share="always"))
        threaded = run_cost(world, "reg", "1", share="always")
        values.update(("t_" + key, value) for key, value in threaded.items())
        pid = weftd_pid()
        before = cpu_ticks(pid)
        time.sleep(IDLE_SECONDS)
        values["weftd_cpu"] = 100 * (cpu_ticks(pid) - before) / TICKS / IDLE_SECONDS
        values["weftd_rss_kib"] = memory_kib(pid, "Rss")
        values["weftd_pss_kib"] = memory_kib(pid, "Pss")
    return values


def rows_of(per_round):
    return [[what, unit, [values.get(key) for values in per_round]] for key, what, unit in ROWS]


def run(build, against, rounds):
    """The rows of this build, and of the other one if there is one, measured in turn."""
    ours, before = [], []
    for number in range(rounds):
        print(f"setup: round {number + 1} of {rounds}", flush=True)
        ours.append(measure(build))
        if against:
            before.append(measure(against))
    result = {"name": "setup", "rounds": rounds, "rows": rows_of(ours)}
    return dict(result, before=rows_of(before)) if against else result
