"""The CPU quota of a container: how many cores it pays for, which may be fewer than it sees.

With more threads than cores in the quota, all threads stand still once the quota of a period (100 ms) is used up.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
"""Control groups of the kernel: version 2, or version 1 with a folder for each controller."""

OWN = Path("/proc/self/cgroup")
"""Names of the control groups of this process: a line `number:controllers:/name` each."""


def cores(groups: Path = GROUPS, own: Path = OWN) -> float:
    """Cores that this process may use by its quota, infinite without one: the least of its groups and those above."""
    return min(_quotas(groups, own), default=float("inf"))


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    for folder in _folders(groups, own):
        for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            with contextlib.suppress(OSError):  # not there
                yield _cores(" ".join((folder / name).read_text(encoding="utf-8") for name in names))


def _cores(text: str) -> float:
    """Cores of a quota and its period in microseconds; infinite for the words max and -1, which stand for no quota."""
    numbers = [int(word) for word in text.split() if word.isdigit()]
    return numbers[0] / numbers[1] if len(numbers) == 2 and all(numbers) else float("inf")


def _folders(groups: Path, own: Path) -> Iterator[Path]:
    """Folders of this process's groups and of those above. A container may see its own group as the topmost."""
    with contextlib.suppress(OSError):
        for line in own.read_text(encoding="utf-8").splitlines():
            _, controllers, name = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            top = groups / controllers if controllers else groups
            group = Path(name.lstrip("/"))
            yield from (top / part for part in (group, *group.parents))
