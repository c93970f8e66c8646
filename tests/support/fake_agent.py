"""An agent that measures nothing: it answers at once, and at one trial does what its arguments say.

python fake_agent.py MACHINE FAULT TRIAL
"""

import json
import os
import signal
import sys
import threading
import time

silent = threading.Event()


def main(machine: str, fault: str, at: str) -> None:
    run = json.loads(sys.stdin.readline())["run"]
    tell({"machine": machine, "record": {"id": machine}})
    threading.Thread(target=beat, daemon=True).start()
    for number, line in enumerate(sys.stdin):
        asked = json.loads(line)
        if number == int(at):
            fail(fault)
        seconds = 3.0 if asked["cell"]["format"] == "dense" else 1.0
        configuration = {name: asked["cell"][name] for name in ("density", "batch_rows")}
        known = {"key": asked["key"], "round": asked["round"], "run": run, "machine": machine}
        status = "disturbed" if fault == "is disturbed" else "ok"
        tell({"row": {**known, "status": status, "seconds_step": seconds, **configuration}})


def fail(fault: str) -> None:
    if fault == "dies":
        print("it burns", file=sys.stderr, flush=True)
        os._exit(9)
    if fault == "falls silent":
        silent.set()
        time.sleep(60)
    if fault.startswith("SIG"):  # to the process of this number, 0 for that which started this one
        name, _, process = fault.partition(":")
        os.kill(int(process) or os.getppid(), getattr(signal, name))
    if fault == "is halted":
        os.kill(os.getpid(), signal.SIGSTOP)
    if fault == "gives no row":
        sys.stdin.read()
        os._exit(0)
    if fault == "dies in the middle of a row":
        sys.stdout.write('{"row": {"key": "')
        sys.stdout.flush()
        os._exit(9)
    if fault == "talks nonsense":
        print("[1, 2", flush=True)


def beat() -> None:
    while not silent.wait(0.1):
        tell({"beat": "at work"})


def tell(message: dict) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
