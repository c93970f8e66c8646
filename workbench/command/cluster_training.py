"""The command `train` by several trainers: a process of its own has them train, and what it tells is shown live."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.live import Live
from rich.table import Table

from workbench.command.console import console
from workbench.command.training import EPOCHS_SHOWN, cell_of
from workbench.measure import loads
from workbench.sweeps import agent_commands
from workbench.sweeps.agent_commands import parse_agents

PROGRAM = (sys.executable, "-m", "workbench.cluster.training")
SECONDS_END = 30.0


class TrainingFailedError(RuntimeError):
    """The training failed; the message has its reason and the end of the log."""


def train(
    settings: dict[str, Any], where: str, trainers: int, folder: Path, dry_run: bool = False, address: str = ""
) -> bool:
    """Train by so many trainers on the cluster `where`, and show how it goes; False if Ctrl-C stopped it.

    Other machines reach this one at `address`, "" for one on the way to them.
    """
    cell = cell_of({**settings, "launch": "kernels"}, several=True)
    if dry_run:
        tell_plan(where, address)
        return True
    known = {name: value for name, value in cell.model_dump(mode="json").items() if value is not None}
    request = {"where": where, "settings": known, "trainers": trainers, "folder": str(folder), "address": address}
    process = subprocess.Popen(
        PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=loads.measuring_environment()
    )
    assert process.stdin is not None
    print(json.dumps(request), file=process.stdin, flush=True)
    try:
        ended = show(_lines(process), cell.epochs)
    except KeyboardInterrupt:
        console.print("Stopping.")
        process.stdin.close()
        ended = show(_lines(process), cell.epochs)
    finally:
        _end(process)
    return conclude(ended, folder)


def _lines(process: subprocess.Popen) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects that a process prints, one a line, until its output ends."""
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def _end(process: subprocess.Popen) -> None:
    """Close the input of a process, wait for its end, and kill it if it takes longer than SECONDS_END."""
    assert process.stdin is not None
    if not process.stdin.closed:
        process.stdin.close()
    try:
        process.wait(SECONDS_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    process.stdout.close()


def tell_plan(where: str, address: str = "") -> None:
    """Print the command that starts each process; the scheduler's address stands for that of the start."""
    if "://" in where:
        console.print(f"Trainers and shards go to the workers of the scheduler {where}.", markup=False)
        return
    program = (sys.executable, "-m", "workbench.cluster.worker", "SCHEDULER")
    for place in parse_agents(where, program):
        console.print(f"{place.name}: {shlex.join(place.command)}", markup=False, highlight=False, soft_wrap=True)
    reached = (
        f"They reach this machine at {agent_commands.local_address(where, address)}; it has "
        f"{agent_commands.format_interfaces()}."
    )
    console.print(reached, markup=False, highlight=False, soft_wrap=True)


def show(lines: Iterator[dict[str, Any]], epochs: int) -> dict[str, Any]:
    """Print one line per epoch as messages arrive; return the last message."""
    steps: dict[int, Mapping[str, Any]] = {}
    last: dict[str, Any] = {}
    with Live(console=console, refresh_per_second=8) as live:
        for last in lines:
            if "step" in last:
                steps[last["step"]] = last
                if console.is_terminal or last["step"] % last["steps_epoch"] == 0:
                    live.update(table(steps))
            elif "processes" in last:
                console.print(f"on {', '.join(last['processes'])}", markup=False)
            elif "lost" in last:
                steps = {step: told for step, told in steps.items() if step <= last["from"]}
                console.print(f"{last['lost']}\nAll go on from step {last['from']}.", markup=False)
            elif "without" in last:
                console.print(f"Left out until the next loss: {last['without']}", markup=False)
    if not console.is_terminal:  # there Live leaves the line open
        console.print()
    return last


def table(steps: Mapping[int, Mapping[str, Any]]) -> Table:
    """Steps, mean loss and time of each epoch, of many the last."""
    shown = Table("epoch", "steps", "loss", "ms a step")
    epochs: dict[int, list[Mapping[str, Any]]] = {}
    for step, told in steps.items():
        epochs.setdefault((step - 1) // told["steps_epoch"], []).append(told)
    for epoch, told_steps in list(epochs.items())[-EPOCHS_SHOWN:]:
        count = len(told_steps)
        loss, seconds = (sum(told[name] for told in told_steps) / count for name in ("loss", "seconds"))
        shown.add_row(str(epoch + 1), str(count), f"{loss:.4f}", f"{1e3 * seconds:.3g}")
    return shown


def conclude(ended: Mapping[str, Any], folder: Path) -> bool:
    """Say how it ended; False if it was stopped, `TrainingFailedError` if it failed."""
    if "done" in ended:
        answer = ended["done"]
        qualities = ", ".join(f"{name} {value:.4f}" for name, value in answer.get("qualities", {}).items())
        lost = {0: "no process was lost", 1: "processes were lost once"}
        told = lost.get(answer["losses"], f"processes were lost {answer['losses']} times")
        console.print(f"held-out {qualities or 'rows: none'}; {told} on the way")
        moved = answer["bytes_moved"] / 2**20
        console.print(f"trainer 0 sent and received {moved:,.1f} MiB; checkpoints and logs: {folder}", markup=False)
        return True
    if "stopped" in ended:
        return False
    raise TrainingFailedError(ended.get("failed", f"The training ended without a word; its logs are in {folder}."))


def where_of(cluster: str | None, trainers: int) -> tuple[str, int]:
    """Place and number of trainers, from the options: as many processes as trainers, or the other way round."""
    if cluster is None:
        return f"local:{trainers}", trainers
    if trainers == 1 and "://" not in cluster:
        return cluster, len(parse_agents(cluster))
    return cluster, trainers
