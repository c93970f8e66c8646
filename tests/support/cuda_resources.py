"""What compiled CUDA kernels take of a multiprocessor: registers, spills, shared memory, and the warps that fit.

`python -m tests.support.cuda_resources results` writes the table of all kernels; no GPU is needed.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from kernels.gpu.source import THREADS

_ENTRY = re.compile(r"Compiling entry function '(?P<symbol>\w+)'(?P<told>.*?)(?=Compiling entry function|\Z)", re.S)
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


class Multiprocessor(NamedTuple):
    """Limits of a streaming multiprocessor (CUDA C++ Programming Guide, table of compute capabilities)."""

    warps: int
    blocks: int
    registers: int
    bytes_shared: int


MULTIPROCESSORS = {
    "sm_80": Multiprocessor(64, 32, 65536, 164 * 1024),
    "sm_90": Multiprocessor(64, 32, 65536, 228 * 1024),
    "sm_100": Multiprocessor(64, 32, 65536, 228 * 1024),
}
WARP = 32
REGISTERS_AT_ONCE = 8
"""Registers of a thread are given in multiples of it."""
SHARED_OF_SYSTEM = 1024
"""Bytes of shared memory that each block takes besides its own."""
WARPS_BLOCK = THREADS // WARP


@dataclass(frozen=True)
class Resources:
    """What one thread, `registers` and bytes of stack and spills, and one block, `bytes_shared`, take."""

    registers: int
    bytes_stack: int
    bytes_spilled: int
    bytes_shared: int

    def warps(self, architecture: str) -> int:
        """Warps that a multiprocessor can hold at once in blocks of `THREADS` threads."""
        most = MULTIPROCESSORS[architecture]
        given = -(-self.registers // REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE * WARP
        by_registers = most.registers // (given * WARPS_BLOCK)
        by_shared = most.bytes_shared // (self.bytes_shared + SHARED_OF_SYSTEM)
        return min(by_registers, by_shared, most.blocks, most.warps // WARPS_BLOCK) * WARPS_BLOCK


def of_log(log: str) -> dict[str, Resources]:
    """By symbol, from what the assembler says with `-v`; ValueError for an entry that it says nothing of."""
    found = {}
    for entry in _ENTRY.finditer(log):
        spills, used, shared = (pattern.search(entry["told"]) for pattern in (_SPILLS, _USED, _SHARED))
        if spills is None or used is None:
            raise ValueError(f"The assembler tells no registers or spills of {entry['symbol']}:{entry['told']}")
        stack, stored, loaded = map(int, spills.groups())
        found[entry["symbol"]] = Resources(int(used[1]), stack, stored + loaded, int(shared[1]) if shared else 0)
    return found


def row(source: str, kernel: str, architecture: str, resources: Resources) -> dict:
    """A row of the table."""
    names = {"source": source, "kernel": kernel, "architecture": architecture}
    return names | asdict(resources) | {"warps": resources.warps(architecture)}


def _grouped(rows: Iterable[dict]) -> dict[tuple[str, str], dict[str, list[dict]]]:
    groups: dict[tuple[str, str], dict[str, list[dict]]] = {}
    for row in rows:
        key = row["source"], row["kernel"].partition("<")[0]
        groups.setdefault(key, {}).setdefault(row["architecture"], []).append(row)
    return groups


def _configuration(rows: list[dict]) -> str:
    registers = sorted(row["registers"] for row in rows)
    spans = f"{registers[0]}" if registers[0] == registers[-1] else f"{registers[0]} to {registers[-1]}"
    return f"{spans}; {min(row['warps'] for row in rows)}"


def page(rows: list[dict], version: tuple[int, int]) -> Iterator[str]:
    """The table as lines of Markdown: a line for each kernel, all its variants together."""
    yield "# Registers of the CUDA kernels\n"
    yield (
        f"Of {len(rows)} compiled variants {sum(row['bytes_spilled'] > 0 for row in rows)} spill registers to memory. "
        f"NVRTC {version[0]}.{version[1]}, blocks of {THREADS} threads; nothing was run. For each architecture:\n"
        "registers of a thread over the variants; the fewest warps, of 64, that a multiprocessor can hold.\n"
    )
    yield f"| source | kernel | variants | {' | '.join(MULTIPROCESSORS)} | shared bytes | spilled bytes |"
    yield f"| --- | --- | --- | {'--- | ' * len(MULTIPROCESSORS)}--- | --- |"
    for (source, kernel), found in sorted(_grouped(rows).items()):
        every = [one for some in found.values() for one in some]
        configurations = " | ".join(_configuration(found[name]) for name in MULTIPROCESSORS)
        most = max(len(some) for some in found.values())
        shared, spilled = (max(one[name] for one in every) for name in ("bytes_shared", "bytes_spilled"))
        yield f"| {source} | {kernel} | {most} | {configurations} | {shared} | {spilled} |"
    yield "\n```\npython -m tests.support.cuda_resources results\n```"


def write(folder: Path) -> Path:
    """Write `cuda-registers.jsonl` and `.md` into a folder, what has changed compiled; returns the page."""
    from tests.gpu.test_gpu_compile import table
    from tests.support import nvrtc

    rows = table()
    lines = (json.dumps({"nvrtc": list(nvrtc.version())} | row) for row in rows)
    (folder / "cuda-registers.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (folder / "cuda-registers.md").write_text("\n".join(page(rows, nvrtc.version())) + "\n", "utf-8")
    return folder / "cuda-registers.md"


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
