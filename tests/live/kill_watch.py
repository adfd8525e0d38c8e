"""Runs `headwater watch` undisturbed, and then in children that are killed at random instants, and compares what they leave.

Children are forked from a process that has everything loaded, so that kills come while they answer, learn and write.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from headwater.cli import main
from headwater.cli.support.signals import install_handlers

sys.path.insert(0, str(Path(__file__).parents[1]))
from live.live_models import COLUMNS, learned_model


def child(arguments, given=None, answers=None):
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null if given is None else given, 0)
        os.dup2(null if answers is None else answers, 1)
        if os.environ.get("KILL_WATCH_SAYS") is None:
            os.dup2(null, 2)
        install_handlers()
        os._exit(main(arguments))
    return pid


def ended(pid):
    _, status = os.waitpid(pid, 0)
    return None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)


def run_files(arguments, state, moments):
    """Return the exit code of the last child; one is killed after each of the moments."""
    for seconds in moments:
        pid = child([*arguments, "--state", str(state)])
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        if (code := ended(pid)) is not None:
            return code
    return ended(child([*arguments, "--state", str(state)]))


def feed(lines, descriptor, stop):
    with os.fdopen(descriptor, "wb", buffering=0) as pipe:
        for line in lines:
            if stop.is_set():
                return
            try:
                pipe.write(line)
            except OSError:
                return


def run_standard_input(arguments, state, moments, events):
    """Feed events to children that are killed, and again those that were not answered; return the last exit code."""
    answered = 0  # events are answered in their order
    for seconds in [*moments, None]:
        given, feeding = os.pipe()
        reading, answers = os.pipe()
        os.set_inheritable(feeding, False)
        pid = child_with_pipes(arguments, state, given, answers, feeding, reading)
        os.close(given)
        os.close(answers)
        stop = threading.Event()
        again = max(0, answered - 7)  # who sends does not know exactly what has arrived
        lines = [json.dumps(event).encode() + b"\n" for event in events[again:]]
        feeder = threading.Thread(target=feed, args=(lines, feeding, stop), daemon=True)
        feeder.start()
        if seconds is not None:
            timer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
            timer.start()
        with os.fdopen(reading, "rb") as pipe:
            for line in pipe:
                if line.endswith(b"\n"):
                    answered = max(answered, int(json.loads(line)["id"]) + 1)
        stop.set()
        code = ended(pid)
        if seconds is not None:
            timer.cancel()
        feeder.join(5.0)
        if code is not None:
            return code, answered
    return None, answered


def child_with_pipes(arguments, state, given, answers, feeding, reading):
    pid = os.fork()
    if pid == 0:
        os.close(feeding)
        os.close(reading)
        os.dup2(given, 0)
        os.dup2(answers, 1)
        os.close(given)
        os.close(answers)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 2)
        sys.stdout = open(1, "w")  # noqa: SIM115
        os._exit(main([*arguments, "--state", str(state)]))
    return pid


def moments_of(longest, kills, chance):
    return [chance.uniform(0.0, longest) for _ in range(kills)]


def run(folder, kind, kills, seed):
    chance = random.Random(seed)
    common = ["-m", str(folder / "m.hw"), "--learn", "--id", "id", "--rate", "0.01", "--snapshot-seconds", "0.02"]
    codes = []
    if kind == "files":
        arguments = ["watch", str(folder / "new.jsonl"), *common, "--sink"]
        began = time.monotonic()
        codes.append(run_files([*arguments, str(folder / "calm.jsonl")], folder / f"{kind}-calm", []))
        longest = 0.9 * (time.monotonic() - began)
        codes.append(
            run_files([*arguments, str(folder / "killed.jsonl")], folder / f"{kind}-killed", moments_of(longest, kills, chance))
        )
        answered = {
            json.loads(line)["id"] for line in (folder / "killed.jsonl").read_bytes().splitlines() if line.endswith(b"}")
        }
    else:
        events = [json.loads(line) for line in (folder / "new.jsonl").read_text().splitlines()]
        arguments = ["watch", "-", *common]
        began = time.monotonic()
        codes.append(run_standard_input(arguments, folder / f"{kind}-calm", [], events)[0])
        longest = 0.9 * (time.monotonic() - began)
        code, number = run_standard_input(arguments, folder / f"{kind}-killed", moments_of(longest, kills, chance), events)
        codes.append(code)
        answered = range(number)
    same = (folder / f"{kind}-calm" / "snapshot.hw").read_bytes() == (folder / f"{kind}-killed" / "snapshot.hw").read_bytes()
    return codes, len(answered), same


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    learned_model(1000).score_one([0.0, 0.0, 0.0][: len(COLUMNS)])  # children find modules and kernels loaded
    shown, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115
    found = [run(Path(asked["folder"]), kind, asked["kills"], asked["seed"]) for kind in ("files", "stdin")]
    print(json.dumps(found), file=shown)
