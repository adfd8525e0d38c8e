"""Runs a command undisturbed, and then again and again in children that are killed at random instants.

A round begins without a checkpoint and lasts until a child ends by itself. Children are forked from a process that has
everything loaded, so that kills come while they learn and write.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from headwater.cli import main


def child(arguments):
    pid = os.fork()
    if pid == 0:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        os._exit(main(arguments))
    return pid


def round_of(arguments, checkpoint, longest, chance):
    """Return how many children were killed before one ended, how many of them wrote a new checkpoint, and its exit code."""
    killed, moments = 0, set()
    while True:
        pid = child(arguments)
        time.sleep(chance.uniform(0.0, longest))
        os.kill(pid, signal.SIGKILL)  # a child that has ended is a zombie, and signals do nothing
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            return killed, len(moments), os.waitstatus_to_exitcode(status)
        killed += 1
        longest *= 1.02  # so that it ends, whatever the machine
        if checkpoint.exists():
            moments.add(checkpoint.stat().st_mtime_ns)


def run(common, folder, every, rounds, seed):
    """Return kills, kills after a new checkpoint, exit codes, and whether all files are those of an undisturbed run."""
    chance = random.Random(seed)

    def arguments(name):
        files = ["-o", str(folder / f"{name}.hw"), "--checkpoint", str(folder / f"{name}.ckpt"), "--checkpoint-rows", every]
        return [*common, *files]

    codes = [main([*common, "-o", str(folder / "calm.hw")])]
    began = time.monotonic()
    codes.append(main(arguments("timed")))
    longest = 0.4 * (time.monotonic() - began)
    kills = got_on = 0
    for number in range(rounds):
        name = f"restless{number}"
        killed, moved, code = round_of(arguments(name), folder / f"{name}.ckpt", longest, chance)
        kills, got_on = kills + killed, got_on + moved
        codes.append(code)
    names = ["timed", *(f"restless{number}" for number in range(rounds))]
    wanted = (folder / "calm.hw").read_bytes()
    return kills, got_on, codes, all((folder / f"{name}.hw").read_bytes() == wanted for name in names)


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    shown, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115
    print(json.dumps(run(asked["common"], Path(asked["folder"]), asked["every"], asked["rounds"], asked["seed"])), file=shown)
