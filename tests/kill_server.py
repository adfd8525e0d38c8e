"""Runs a command undisturbed, and then in children that are killed at random instants, until one of them ends by itself.

Children are forked from a process that has everything loaded, so that kills come while they learn and write.
"""

import json
import os
import random
import signal
import sys
import time

from headwater.cli import main


def child(arguments):
    pid = os.fork()
    if pid == 0:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        os._exit(main(arguments))
    return pid


def run(arguments, kills, longest, seed):
    """Return how many children were killed before one ended, how many of them had got on by then, and its exit code."""
    chance = random.Random(seed)
    checkpoint = arguments[arguments.index("--checkpoint") + 1]
    killed, moments = 0, set()
    while True:
        pid = child(arguments)
        if killed < kills:
            time.sleep(chance.uniform(0.0, longest))
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            killed += 1
            if os.path.exists(checkpoint):
                moments.add(os.stat(checkpoint).st_mtime_ns)
            continue
        return killed, len(moments), os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    shown, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115
    for _ in range(2):  # the first loads all there is to load
        began = time.monotonic()
        if main(asked["calm"]) != 0:
            sys.exit(1)
    calm = time.monotonic() - began
    print(json.dumps(run(asked["restless"], asked["kills"], calm, asked["seed"])), file=shown)
