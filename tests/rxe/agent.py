#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs commands in a guest on request, by lines of JSON on its virtio port "weft".

  {"id": N, "start": [COMMAND...]}   -> when it has ended: {"id": N, "status": S, "output": TEXT}
  {"id": N, "end": M}                ends command M with SIGKILL  -> {"id": N}
  {"id": N, "listens": PORT}         -> {"id": N, "is": whether somebody listens there by TCP}
  {"id": N, "leave": true}           ends the agent

First it says {"id": 0}.
"""

import glob
import json
import os
import signal
import subprocess
import sys
import threading

TCP_LISTEN = "0A"


def port_path():
    for path in glob.glob("/sys/class/virtio-ports/*/name"):
        with open(path) as f:
            if f.read().strip() == "weft":
                return "/dev/" + path.split("/")[-2]
    sys.exit("agent: no virtio port")


def listens(port):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as f:
            rows = [line.split() for line in f.readlines()[1:]]
        if any(r[1].endswith(f":{port:04X}") and r[3] == TCP_LISTEN for r in rows):
            return True
    return False


class Agent:
    def __init__(self, fd):
        self.fd = fd
        self.lock = threading.Lock()
        self.running = {}

    def say(self, **what):
        line = json.dumps(what).encode() + b"\n"
        with self.lock:
            while line:
                line = line[os.write(self.fd, line):]

    def await_end(self, number, process):
        output = process.communicate()[0]
        self.say(id=number, status=process.returncode, output=output)

    def start(self, number, command):
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, errors="replace",
                                       start_new_session=True)
        except OSError as e:
            self.say(id=number, status=127, output=f"{command[0]}: {e.strerror}\n")
            return
        self.running[number] = process
        threading.Thread(target=self.await_end, args=(number, process), daemon=True).start()

    def end(self, number):
        try:
            os.killpg(self.running[number].pid, signal.SIGKILL)
        except (KeyError, ProcessLookupError):
            pass

    def serve(self):
        """Until it is told to leave, or the other end has gone."""
        self.say(id=0)
        with os.fdopen(self.fd, "rb", closefd=False) as port:
            for line in port:
                asked = json.loads(line)
                if "start" in asked:
                    self.start(asked["id"], asked["start"])
                elif "end" in asked:
                    self.end(asked["end"])
                    self.say(id=asked["id"])
                elif "listens" in asked:
                    self.say(**{"id": asked["id"], "is": listens(asked["listens"])})
                else:
                    return


if __name__ == "__main__":
    Agent(os.open(port_path(), os.O_RDWR)).serve()
