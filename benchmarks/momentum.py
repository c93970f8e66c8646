"""`benchmarks momentum`: torch.optim.SGD with momentum beside the lazy optimizers of the bridge, on an embedding.

PyTorch keeps the momentum of row-sparse gradients as a tensor that grows with the steps; ours has a row for each row of
the weight. Each optimizer has a process of its own, and all train on the same ids.
"""

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.shapes import BenchError
from kernels.registry import format_size, unknown_name
from workbench.measure.memory import peak_owned_bytes, reset_peak

OPTIMIZERS: dict[str, tuple[str, str, dict[str, float]]] = {
    "torch.optim.SGD, momentum 0.9": ("torch.optim", "SGD", {"lr": 0.1, "momentum": 0.9}),
    "LazyMomentum, beta 0.9": ("workbench.bridges.pytorch", "LazyMomentum", {"lr": 0.1, "beta": 0.9}),
    "LazySGD": ("workbench.bridges.pytorch", "LazySGD", {"lr": 0.1}),
}
"""Optimizers by name: module, class and options."""
CODE = """
import json, sys
from benchmarks.momentum import steps
print(json.dumps(list(steps(*json.loads(sys.argv[1])))))
"""


def steps(name: str, count: int, rows: int, width: int, ids: int) -> Iterator[dict[str, Any]]:
    """Yield a record for each tenth of `count` steps of an embedding [rows, width] on batches of `ids` ids.

    A record has the steps done, the CPU seconds of a step since the last record, and the bytes at the peak so far
    beyond those after ten steps that are not counted. Popular ids are drawn more often. Raises BenchError for an
    unknown optimizer.
    """
    import torch

    if name not in OPTIMIZERS:
        raise BenchError(unknown_name("optimizer", name, OPTIMIZERS))
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layer, generator = torch.nn.Embedding(rows, width, sparse=True), np.random.default_rng(0)
    module, kind, options = OPTIMIZERS[name]
    optimizer = getattr(importlib.import_module(module), kind)(layer.parameters(), **options)

    def train(number: int) -> None:
        """Take steps."""
        for _ in range(number):
            batch = torch.from_numpy((rows * generator.random(ids) ** 3).astype(np.int64))
            optimizer.zero_grad()
            (layer(batch) ** 2).sum().backward()
            optimizer.step()

    train(10)
    reset_peak()
    before = peak_owned_bytes()
    for part in range(10):
        begun = time.process_time()
        train(count // 10)
        seconds = (time.process_time() - begun) / (count // 10)
        known = {"optimizer": name, "steps": (part + 1) * (count // 10), "seconds_step": seconds}
        yield {**known, "bytes_peak": peak_owned_bytes() - before}


def run(count: int = 10_000, rows: int = 100_000, width: int = 16, ids: int = 64) -> str:
    """Return a Markdown table: the time of a step and the memory of each optimizer, at the start and at the end."""
    lines = [
        "| optimizer | first tenth, CPU ms a step | last tenth, CPU ms a step | memory that came with the steps |",
        "|---|---|---|---|",
    ]
    for name in OPTIMIZERS:
        records = _in_own_process(name, count, rows, width, ids)
        first, last = (1e3 * record["seconds_step"] for record in (records[0], records[-1]))
        lines.append(f"| {name} | {first:.3g} | {last:.3g} | {format_size(records[-1]['bytes_peak'])} |")
    sizes = f"{count:,} steps of {ids} ids of an embedding [{rows:,}, {width}], one thread."
    return "\n".join([*lines, "", sizes])


def _in_own_process(*arguments: Any) -> list[dict[str, Any]]:
    """Return the records of `steps` with these arguments, from a new process. Raises BenchError if it fails."""
    command = [sys.executable, "-c", CODE, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{arguments[0]} ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])
