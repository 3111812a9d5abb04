#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What libscif.so.0 exports, and whether programs that were linked long ago start on it.

usage: scif_abi.py BUILD CC INCLUDE

The 22 classic calls must have the version node SCIF_0.0, what came later WEFT_1.0.  A program is
linked with a stub that has the same soname and the node SCIF_0.0 alone, as Intel's library had,
and must then start and work with ours, in C; the header must also compile as C++.  Beside the
system's rdma-core ours starts, too, and says that there is no device.
"""
import errno
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

CLASSIC = """accept bind close connect fence_mark fence_signal fence_wait get_fd get_nodeIDs listen
mmap munmap open poll readfrom recv register send unregister vreadfrom vwriteto writeto""".split()
LATER = """client_register client_unregister get_node_ids get_pages pin_pages put_pages
register_pinned_pages unpin_pages""".split()
# The kernel's convention: the calls of <linux/scif.h> have these symbols.
KERNEL = """accept bind client_register client_unregister close connect fence_mark fence_signal
fence_wait get_node_ids get_pages listen open pin_pages poll put_pages readfrom recv register
register_pinned_pages send unpin_pages unregister vreadfrom vwriteto writeto""".split()

PROGRAM = r"""
#include <scif.h>
#include <stdio.h>
#include <fcntl.h>

int main(void)
{
	struct scif_portID dst = {0, 0}, peer;
	scif_epd_t l = scif_open(), c = scif_open(), s;
	uint16_t self = 1;
	char buf[6] = "";
	int port = scif_bind(l, 0);

	dst.port = port;
	if (port <= SCIF_PORT_RSVD || scif_listen(l, 1) || scif_get_nodeIDs(NULL, 0, &self) != 1)
		return 1;
	fcntl(scif_get_fd(c), F_SETFL, O_NONBLOCK);
	if (scif_connect(c, &dst) != -1 || errno != EINPROGRESS)
		return 2;
	if (scif_accept(l, &peer, &s, SCIF_ACCEPT_SYNC))
		return 3;
	if (scif_send(s, "hello", 5, SCIF_SEND_BLOCK) != 5)
		return 4;
	while (scif_connect(c, &dst) < 0 && errno == EINPROGRESS)
		;
	if (scif_recv(c, buf, 5, SCIF_RECV_BLOCK) != 5)
		return 5;
	puts(buf);
	return scif_close(c) || scif_close(s) || scif_close(l);
}
"""

# What a library without a device answers.
NO_DEVICE = r"""
#include <scif.h>
#include <stdio.h>

static _Alignas(4096) char page[4096];

static void say(const char *call, int ret)
{
	printf("%s %d\n", call, ret < 0 ? errno : ret);
}

int main(void)
{
	struct scif_client client = {.name = "nobody"};
	struct scif_portID dst = {0, 2000};
	scif_pinned_pages_t pages;
	uint16_t self = 9;

	say("open", scif_open());
	say("nodes", scif_get_nodeIDs(NULL, 0, &self));
	say("self", self);
	say("connect", scif_connect(-1, &dst));
	say("pin", scif_pin_pages(page, 4096, SCIF_PROT_READ, 0, &pages));
	say("client", scif_client_register(&client));
	return 0;
}
"""

# Code of the kernel: its types, and a function of each kind.
KERNEL_CODE = r"""
%s
static void probe(struct scif_peer_dev *spdev)
{
	u8 node = spdev->dnode;
	dev_set_drvdata(&spdev->dev, dev_name(&spdev->dev) ? &spdev->dev : 0);
	(void)node;
}

int kernel_code(u16 port)
{
	struct scif_client client = {"x", probe, 0, {0, 0}};
	struct scif_port_id dst = {1, port};
	scif_epd_t epd = scif_open();
	struct scif_pollepd p = {epd, EPOLLIN, 0};
	struct scif_range *r = 0;
	dma_addr_t dma = 0;
	u64 word = 1;

	if (!epd || scif_connect(epd, &dst) < 0 || scif_poll(&p, 1, 0) < 0)
		return -ENODEV;
	if (!scif_get_pages(epd, 0, 4096, &r))
		dma = r->phys_addr[0];
	scif_fence_signal(epd, 0, word, (off_t)dma, word, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_LOCAL);
	return scif_client_register(&client);
}
"""


def run(*args, **more):
    return subprocess.run(args, check=True, capture_output=True, text=True, **more).stdout


def exported(lib):
    found = {}
    for line in run("readelf", "-W", "--dyn-syms", lib).splitlines():
        f = line.split()
        if len(f) >= 8 and f[6] not in ("UND", "ABS") and f[4] == "GLOBAL":
            name, _, node = f[7].partition("@@")
            found[name] = node
    return found


def check_kernel(cc, include, path):
    """Its header: by both names, in C and C++, its symbols, and not beside the other one."""
    folder = os.path.join(include, "weft-kernel")
    code = path("kernel.c", KERNEL_CODE % "#include <linux/scif.h>")
    run(cc, "-Wall", "-Wextra", "-Werror", "-I", folder, "-c", "-o", path("kernel.o"), code)
    undefined = re.findall(r" U (.*scif\w*)", run("nm", path("kernel.o")))
    assert undefined and all(u.startswith("weft_kscif_") for u in undefined), undefined
    if shutil.which("c++"):
        code = path("kernel.cc", KERNEL_CODE % "#include <weft/scif_kernel.h>")
        run("c++", "-fsyntax-only", "-Wall", "-Werror", "-I", include, code)
    for first, second in (("scif.h", "linux/scif.h"), ("linux/scif.h", "scif.h")):
        both = path("both.c", f"#include <{first}>\n#include <{second}>\n")
        refused = subprocess.run([cc, "-fsyntax-only", "-I", folder, "-I", include, both],
                                 capture_output=True, text=True)
        assert refused.returncode and "one convention" in refused.stderr


def check_no_device(cc, include, lib, path):
    """Alone beside the system's own libraries it loads, and says that there is no device."""
    if not glob.glob("/usr/lib/*-linux-gnu/librdmacm.so.1"):
        print("no rdma-core in the system: not started on it")
        return
    if glob.glob("/sys/class/infiniband/*"):
        print("an adapter: not started without one")
        return
    folder = path("alone")
    os.mkdir(folder)
    shutil.copy(lib, folder)
    run(cc, "-Wall", "-Werror", "-I", include, "-o", path("none"), path("none.c", NO_DEVICE),
        "-L", folder, "-l:libscif.so.0", "-Wl,--allow-shlib-undefined")
    env = {"LD_LIBRARY_PATH": folder, "WEFT_RUNTIME_DIR": path("run"), "LD_BIND_NOW": "1"}
    libs = run("ldd", "-r", path("none"), env=env)
    assert os.path.join(folder, "libscif.so.0") in libs and "undefined" not in libs, libs
    for ours in ("libibverbs.so.1", "librdmacm.so.1"):
        assert re.search(ours + r" => (/usr)?/lib", libs), libs
    said = dict(line.split() for line in run(path("none"), env=env).splitlines())
    want = {"open": errno.ENODEV, "nodes": 1, "self": 0, "connect": errno.EBADF,
            "pin": errno.ENODEV, "client": errno.ENODEV}
    assert said == {k: str(v) for k, v in want.items()}, said


def main():
    build, cc, include = sys.argv[1:]
    lib = os.path.join(build, "lib", "libscif.so.0")
    want = {"scif_" + n: "SCIF_0.0" for n in CLASSIC}
    want |= {"scif_" + n: "WEFT_1.0" for n in LATER}
    want |= {"weft_" + n: "WEFT_PRIVATE_1" for n in ("log_hinted", "scif_device")}
    want |= {"weft_kscif_" + n: "WEFT_1.0" for n in KERNEL}
    want |= {"weft_scif_" + n: "WEFT_1.0" for n in ("from_fd", "to_fd")}
    found = exported(lib)
    assert found == want, f"exports differ: {set(found.items()) ^ set(want.items())}"
    dynamic = run("readelf", "-W", "-d", lib)
    assert "soname: [libscif.so.0]" in dynamic
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    extra = needed - {"libc.so.6", "libibverbs.so.1", "librdmacm.so.1"}
    assert not extra, f"needs more: {extra}"

    # It starts beside rdma-core's libibverbs too: our own nodes are looked up, not linked.
    needs = run("readelf", "-W", "-V", lib).split("File: libibverbs.so.1", 1)[1]
    nodes = re.findall(r"Name: (\S+)", needs.split("File:", 1)[0])
    assert "IBVERBS_1.1" in nodes, nodes
    assert not [n for n in nodes if n.startswith("WEFT")], nodes

    with tempfile.TemporaryDirectory() as d:
        def path(name, text=None):
            p = os.path.join(d, name)
            if text is not None:
                with open(p, "w", encoding="ascii") as f:
                    f.write(text)
            return p

        stub = path("stub.c", "".join(f"int scif_{n}(void) {{ return -1; }}\n" for n in CLASSIC))
        node = path("stub.map", "SCIF_0.0 { global: scif_*; local: *; };\n")
        run(cc, "-shared", "-fPIC", "-o", path("libscif.so.0"), stub, "-Wl,-soname,libscif.so.0",
            f"-Wl,--version-script={node}")
        shutil.copy(path("libscif.so.0"), path("libscif.so"))
        program = path("program.c", PROGRAM)
        run(cc, "-D_GNU_SOURCE", "-Wall", "-Werror", "-I", include, "-o", path("program"), program,
            "-L", d, "-lscif")
        versions = run("readelf", "-W", "-V", path("program"))
        assert "SCIF_0.0" in versions
        assert subprocess.run([path("program")], env={"LD_LIBRARY_PATH": d}).returncode == 1, \
            "the stub works"
        assert run(path("program")) == "hello\n"
        if shutil.which("c++"):
            run("c++", "-fsyntax-only", "-Wall", "-Werror", "-I", include,
                path("header.cc", "#include <scif.h>\n"))
        check_kernel(cc, include, path)
        check_no_device(cc, include, lib, path)
    print(f"{len(found)} symbols, an old program starts")


main()
