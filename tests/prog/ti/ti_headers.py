#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each header of the Transport Interface compiles alone, in every language that programs use.

usage: ti_headers.py INCLUDE_DIRECTORY COMPILER...
"""
import subprocess
import sys

HEADERS = ["sdp_ti.h", "ti_exports.h", "TI/ti_exports.h", "weft/ti.h"]
LANGUAGES = [["-x", "c", "-std=gnu89"], ["-x", "c", "-std=c11", "-pedantic"],
             ["-x", "c", "-std=gnu17"], ["-x", "c++", "-std=c++17"]]

# What a program writes: tags and macros, a provider's two functions, the vector; kernel types of its
# own; bare names of the socket calls and strdup() beside it.
PROGRAM = """
#include <sys/socket.h>
#include <ti_exports.h>
#include <weft/ti.h>
typedef char statuses[TI_FAILURE == TI_ERROR && TI_FERROR == TI_ERROR && FSUCCESS == TI_SUCCESS &&
    TI_INVALID_STATE == TI_INVALID_OPERATION && TI_CANCELLED == TI_CANCELED &&
    TI_CQ_OVERRUN == TI_CQ_OVERRUN_ERROR && TI_INVLAID_HANDLE == TI_INVALID_HANDLE &&
    TI_INVLAID_PARAMETER == TI_INVALID_PARAMETER ? 1 : -1];
static void on_error(ti_err_rec_t *rec) { rec->context = &rec->code; }
#ifdef __cplusplus
extern "C"
#endif
void SDP_register_transport(ti_opts_t *ops, ti_event_cb_t notify)
{
    struct _ti_data_element element;
    struct _ti_addr_ addr;
    ti_mem_win_handle_t window = 0;
    ti_err_cb_t broken = on_error;
    ti_comp_info_t comp;
    comp.pfn_err_cb = broken;
    (void)comp;
    (void)ops->dereg_phys_mem(0);
    (void)(ops->ti_events_register(0, notify) || ops->ti_events_enable(0, notify) ||
        ops->tp_enables_events(0, notify) || ops->link_event_register(0, notify) ||
        ops->ti_events_deregister(0, notify));
    SET_IPV4_ADDR(addr, 0x0100007f);
    addr.ip4_addr = addr.in_u.in4.s_addr;
    element.local_data_desc = 0;
    element.rdma_data_desc = 0;
    element.msg_opt = TI_OPT_SOLICITED | AT_OPT_SIGNALED | TI_OPT_FENCE | TI_OPT_IMMEDIATE;
    element.status = ops->destroy_ti_svc(0, 0, 0);
    if (element.status == TI_INVLAID_HANDLE || element.status == TI_FERROR || FSUCCESS ||
        element.status == TI_CANCELLED || element.status == TI_INVALID_STATE)
        notify(TI_NETDEV_ONLINE, strdup("x"), &window);
    (void)accept(connect(-1, 0, 0), 0, 0);
    (void)listen(-1, CN_REQUEST | CN_REPLY | CN_REJECT | CN_MRA);
}
"""
OWN_TYPES = """
#define TI_HAVE_BOOLEAN_T
#define TI_HAVE_U32
#define TI_HAVE_UNCHAR
#define TI_HAVE_NET_DEVICE
#define IN
#define OUT
typedef int boolean_t;
typedef unsigned int u32;
typedef unsigned char unchar;
struct net_device;
""" + PROGRAM

include, compiler = sys.argv[1], sys.argv[2:]
failed = 0


def compiles(language, source, what):
    global failed
    done = subprocess.run([*compiler, *language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                           "-I", include, "-"], input=source, text=True, capture_output=True,
                          check=False)
    if done.returncode:
        failed += 1
        print(f"{what}, {' '.join(language)}:\n{done.stderr}")


for lang in LANGUAGES:
    for header in HEADERS:
        compiles(lang, f"#include <{header}>\n#include <{header}>\n", header)
    more = [] if "c11" not in lang[2] else ["-D_GNU_SOURCE"]
    compiles(lang + more, PROGRAM, "a program")
    compiles(lang + more, OWN_TYPES, "a program with types of its own")
print(f"{len(LANGUAGES) * (len(HEADERS) + 2)} compilations, {failed} failed")
sys.exit(failed > 0)
