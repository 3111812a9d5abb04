# SPDX-License-Identifier: BSD-3-Clause
"""What a program of cases.table must have printed.  Each check raises pair.Failure."""

import re

from pair import Failure

ALL_SIZES = [2 ** i for i in range(1, 24)]  # what -a measures
DEFAULT_SIZE = {"ib_write_bw": 65536, "ib_read_bw": 65536, "ib_send_bw": 65536,
                "ib_write_lat": 2, "ib_read_lat": 2, "ib_send_lat": 2,
                "ib_atomic_bw": 8, "ib_atomic_lat": 8}
# perftest says so when the CPU was taken away while it calibrated its clock; then its rates mean
# nothing.
BAD_CLOCK = "Correlation coefficient"
# perftest takes the root of a rounding error below 0 where its times vary much.
NUMBER = re.compile(r"^(\d+(\.\d+)?|-?nan)$")


def option(args, name, default=None):
    return args[args.index(name) + 1] if name in args else default


def expect(condition, what):
    if not condition:
        raise Failure(what)


def table_rows(output):
    """The result lines of a perftest program, as lists of numbers."""
    rows = []
    in_table = False
    for line in output.split("\n"):
        words = line.split(BAD_CLOCK)[0].split()
        if line.lstrip().startswith("#bytes"):
            in_table = True
        elif in_table and words and all(NUMBER.match(w) for w in words):
            rows.append([float(w) for w in words])
        elif in_table and words and line.lstrip().startswith("---"):
            in_table = False
    return rows


def port_mtu(output):
    """What a perftest program says of the port: that of its link.  A datagram holds no more."""
    found = re.search(r"Mtu\s*:\s*(\d+)\[B\]", output)
    expect(found and int(found[1]) in (256, 512, 1024, 2048, 4096), "no MTU of the port")
    return int(found[1])


def least_moved(program, args):
    """Bytes of payload that both ends of a case send together, at least."""
    if program == "rping":
        return int(option(args, "-C")) * int(option(args, "-S", 64))
    if program.startswith(("ib_", "ibv_")) and "-a" not in args:
        return int(option(args, "-n", 1000)) * int(option(args, "-s", 1))
    return 1


def check_perftest(program, args, client):
    """A row for each size, with the wanted iterations and a time or bandwidth above 0."""
    default = DEFAULT_SIZE[program]
    if "UD" in args:
        default = min(default, port_mtu(client.output))
    sizes = ALL_SIZES if "-a" in args else [int(option(args, "-s", default))]
    iterations = int(option(args, "-n")) * int(option(args, "-q", 1))
    rows = table_rows(client.output)
    expect([int(r[0]) for r in rows] == sizes,
           f"sizes in the table: {[int(r[0]) for r in rows]}, expected {sizes}")
    for row in rows:
        expect(row[1] == iterations, f"{row[1]:.0f} iterations instead of {iterations}: {row}")
        if program.endswith("_bw"):
            expect(len(row) == 5, f"not a bandwidth row: {row}")
            expect(row[3] > 0 or row[4] > 0, f"no bandwidth: {row}")
        else:
            expect(len(row) >= 7, f"not a latency row: {row}")
            expect(row[4] > 0 and row[5] > 0, f"no latency: {row}")


def check_pingpong(program, args, server, client):
    """Both ends moved all bytes in all iterations."""
    iterations = int(option(args, "-n", 1000))
    size = int(option(args, "-s", 1024 if program == "ibv_ud_pingpong" else 4096))
    for end in (server, client):
        expect(f"{2 * size * iterations} bytes in " in end.output, f"not all bytes moved: {end}")
        expect(f"{iterations} iters in " in end.output, f"not all iterations: {end}")
        expect("invalid data" not in end.output, f"wrong data: {end}")


def check_devices(args, run):
    names = [line.split()[0] for line in run.output.split("\n")
             if re.match(r"^\s+\S+\s+[0-9a-f]{16}$", line)]
    expect(names == ["weft0"], f"devices {names}, expected weft0 alone")


def check_devinfo(args, run):
    if "-l" in args:
        expect(re.search(r"1 HCAs? found:\s+weft0\s", run.output), "weft0 is not in the list")
        return
    wanted = [r"hca_id:\s+weft0", r"transport:\s+InfiniBand", r"fw_ver:\s+\d+\.\d+\.\d+",
              r"vendor_id:\s+0xffffff", r"phys_port_cnt:\s+1", r"state:\s+PORT_ACTIVE",
              r"link_layer:\s+Ethernet", r"node_guid:\s+(?!0000:0000:0000:0000)"]
    if "-v" in args:
        wanted += [r"max_mr_size:\s+0x", r"max_qp:\s+[1-9]", r"max_cqe:\s+[1-9]",
                   r"atomic_cap:\s+ATOMIC_HCA", r"GID\[\s*0\]:\s+fe80", r"GID\[\s*1\]:\s+\S",
                   r"127\.0\.0\.1, RoCE v2"]
    for pattern in wanted:
        expect(re.search(pattern, run.output), f"no line like: {pattern}")
    expect("Failed" not in run.output and "error" not in run.output.lower(),
           "complains in its output")


def check_ibstat(args, run):
    """What libibumad reads of weft0; with -p the GUID of its port alone."""
    if "-p" in args:
        expect(re.search(r"^0x(?!0{16})[0-9a-f]{16}$", run.output, re.M), "no GUID")
        return
    wanted = [r"CA:? 'weft0'", r"Port 1:", r"State: Active", r"Physical state: LinkUp",
              r"Rate: [1-9]", r"Capability mask: 0x00010000", r"Link layer: Ethernet"]
    for pattern in wanted:
        expect(re.search(pattern, run.output, re.M), f"no line like: {pattern}")


def check_ibstatus(args, run):
    """A shell script that reads sysfs."""
    wanted = [r"Infiniband device 'weft0' port 1 status:", r"default gid:\s+fe80:",
              r"base lid:\s+0x0$", r"state:\s+4: ACTIVE", r"phys state:\s+5: LinkUp",
              r"rate:\s+[1-9]\d* Gb/sec", r"link_layer:\s+Ethernet"]
    for pattern in wanted:
        expect(re.search(pattern, run.output, re.M), f"no line like: {pattern}")


def check_alone(program, args, run):
    expect(run.status == 0, "exit status is not 0")
    {"ibv_devices": check_devices, "ibv_devinfo": check_devinfo, "ibstat": check_ibstat,
     "ibstatus": check_ibstatus}[program](args, run)


def check_rping(args, server, client):
    """Every ping came back with what was sent."""
    count = int(option(args, "-C"))
    lines = [line for line in client.output.split("\n") if "ping data: rdma-ping-" in line]
    expect(len(lines) == count, f"{len(lines)} pings instead of {count}")
    for i, line in enumerate(lines):
        expect(f"rdma-ping-{i}: " in line, f"ping {i} reads {line}")


def check_ucmatose(args, server, client):
    for end in (server, client):
        expect("return status 0" in end.output, f"ended badly: {end}")
        expect("data transfers complete" in end.output, f"no data: {end}")


def check_rdma_client(args, server, client):
    expect(re.search(r"^rdma_x?client: end 0$", client.output, re.M), "the client failed")
    expect(re.search(r"^rdma_x?server: end 0$", server.output, re.M), "the server failed")


def check_cmtime(args, server, client):
    rows = [line.split(":")[0].strip() for line in client.output.split("\n") if ":" in line]
    for step in ("connect", "disconnect", "destroy"):
        expect(step in rows, f"no row {step}")


def check_qperf(args, server, client):
    tests = [a for a in args if a.startswith(("rc_", "ver_rc_"))]
    for test in tests:
        expect(re.search(rf"^{test}:\n(    .*=  *[0-9.]+ .*\n?)+", client.output, re.M),
               f"no result of {test}")


def check_fio(args, server, client):
    for end in (server, client):
        expect(re.search(r"err= 0", end.output), f"an error: {end}")
    size = next(a for a in args if a.startswith("--size="))
    written = {"--size=4m": r"(4096KiB|4\.0)", "--size=256k": "256KiB"}[size]
    expect(re.search(rf"WRITE: .*io={written}", client.output), f"not all bytes written: {client}")


DEFAULT_TESTS = [f"{size}_{kind}" for kind in ("lat", "bw") for size in ("64", "4k", "64k", "1m")]


def check_rstream(args, server, client):
    """A row for each test, on both ends, of all that was asked for; no complaint about the data."""
    custom = any(option in args for option in ("-S", "-C", "-I"))
    for end in (server, client):
        rows = [line.split() for line in end.output.split("\n") if re.search(r"[0-9]s +[0-9.]+ +[0-9.]+$", line)]
        names = [row[0] for row in rows]
        expect(names == (["custom"] if custom else DEFAULT_TESTS), f"tests {names}: {end}")
        for row in rows:
            expect(float(row[-1]) > 0, f"no time: {row}")
        expect("failed" not in end.output, f"wrong data: {end}")


def check_udpong(args, server, client):
    sent = int(option(args, "-C")) * (2 if "e" in args else 1)
    rows = [line.split() for line in client.output.split("\n") if line.startswith("custom")]
    expect(len(rows) == 1 and rows[0][2] == str(sent), f"not {sent} datagrams: {client}")


def check_rcopy(args, server, client):
    expect("done" in client.output, f"not done: {client}")


def check_iperf3(args, server, client):
    expect("iperf Done." in client.output, f"not done: {client}")
    for who in ("sender", "receiver"):
        rates = re.findall(rf" ([0-9.]+) [KMG]?bits/sec .*{who}", client.output)
        expect(rates and all(float(r) > 0 for r in rates), f"no rate of the {who}: {client}")


def check_ucx(args, server, client):
    """All iterations, with a time above 0."""
    final = re.search(r"^Final: +(\d+) +([0-9.]+) +([0-9.]+) +([0-9.]+) ", client.output, re.M)
    expect(final, f"no result: {client}")
    expect(final[1] == option(args, "-n"), f"{final[1]} iterations: {client}")
    expect(float(final[4]) > 0, f"no time: {client}")


FI_SIZES = ["64", "256", "1k", "4k", "64k", "1m"]


def check_fi_pingpong(args, server, client):
    """A row for each size, with all messages acknowledged."""
    count = option(args, "-I")
    wanted = [FI_SIZES, FI_SIZES[:4]]
    if option(args, "-e") == "dgram":  # as large as the port's MTU, which follows the link's
        wanted.append(FI_SIZES[:3])
    for end in (server, client):
        rows = [line.split() for line in end.output.split("\n") if re.match(r"[0-9]+[km]? ", line)]
        sizes = [row[0] for row in rows]
        expect(sizes in wanted, f"sizes {sizes}: {end}")
        for row in rows:
            expect(row[1:3] == [count, "=" + count], f"not all messages: {row}")
            expect(float(row[6]) > 0, f"no time: {row}")


def check_nothing(args, server, client):
    """Its copy is compared, or it checks itself."""


def check_mckey(args, server, client):
    group = option(args, "-M") or option(args, "-m")
    gid = group if ":" in group else f"::ffff:{group}"
    count = int(option(args, "-c", 1))
    for end in (server, client):
        expect(end.output.count(f"mckey: joined dgid: {gid} ") == count, f"not joined: {end}")
        expect("return status 0" in end.output, f"ended badly: {end}")
        expect("data transfers complete" in end.output, f"no data: {end}")


CHECKS = {"cmtime": check_cmtime, "depths": check_nothing, "fi_pingpong": check_fi_pingpong, "fio": check_fio,
          "iperf3": check_iperf3, "mckey": check_mckey, "nc.traditional": check_nothing,
          "qperf": check_qperf, "rcopy": check_rcopy, "rdma_client": check_rdma_client,
          "rdma_xclient": check_rdma_client, "riostream": check_rstream, "rping": check_rping,
          "rstream": check_rstream, "ucmatose": check_ucmatose, "ucx_perftest": check_ucx,
          "udaddy": check_ucmatose, "udpong": check_udpong}


def ended_well(program, end):
    """rping destroys the channel that its other thread may just begin to wait on again; into a pipe its
    standard output comes behind what it says of that."""
    return end.status == 0 or (program == "rping" and end.status == 255 and
                               "rdma_get_cm_event: Bad file descriptor\n" in end.output)


def check_pair(program, args, server, client):
    expect(ended_well(program, server) and ended_well(program, client), "an exit status is not 0")
    if program in CHECKS:
        CHECKS[program](args, server, client)
    elif program == "ibv_xsrq_pingpong":
        for end in (server, client):
            expect("success" in end.output.split("\n"), f"no word of success: {end}")
    elif program.endswith("_pingpong"):
        check_pingpong(program, args, server, client)
    else:
        check_perftest(program, args, client)
