"""The profile of the file that is chosen: when it is counted, by whom, and what came of it. Knows no widgets."""

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import traitlets

from workbench import data
from workbench.data.profiles.worker import Counting
from workbench.panels.state import LabState
from workbench.study import suited
from workbench.study.suited import drop_unread_files, files_of
from workbench.sweeps.problem import OF_FILE, parameters_of_file
from workbench.sweeps.spec import FILES

BYTES_UNASKED = 64 * 2**20
"""Files up to this size are profiled unasked, in seconds; larger ones when somebody asks."""
NATURAL = "guessed"


class ProfileRequest(NamedTuple):
    """Subject of a profile: data set, what its source is called with, bytes to read, size and time of each file."""

    dataset: str
    parameters: dict[str, Any]
    bytes_: int
    stamps: tuple[tuple[int, int] | None, ...]


class Profiling(traitlets.HasTraits):
    """Follows the choices of a study with the profile of its file.

    `status` is empty if there is nothing to count, else waiting (for `start`), counting, done (`profile`) or failed
    (`problem`). Beside a sweep nothing is counted: it would disturb the trials.
    """

    status = traitlets.Unicode()
    profile = traitlets.Dict()
    problem = traitlets.Unicode()
    asked = traitlets.Instance(ProfileRequest, allow_none=True)

    def __init__(self, state: LabState) -> None:
        super().__init__()
        self.state = state
        self._counting: Counting | None = None
        self._looked_at: dict[str, Any] | None = None

    def poll(self) -> None:
        """Follow what changed since the last look: choices, files, the sweep, the process that counts."""
        may_count, is_same = not self.state.alive, self.state.choices is self._looked_at
        if is_same and not may_count and self._counting is None:  # a look at files costs, and a sweep is at work
            return
        asked, self._looked_at = asked_of(self.state.choices), self.state.choices
        if asked != self.asked:
            self.asked = asked
            self._become("waiting" if asked else "")
        if self._counting is not None and not may_count:
            self._become("waiting")
        if self._counting is not None and (found := self._counting.poll()) is not None:
            self._become("failed" if "error" in found else "done", found)
            if self.profile:
                self.state.fill(self.profile)
        if self.status == "waiting" and self.is_small and may_count:
            self.start()

    @property
    def is_small(self) -> bool:
        """Whether the file is profiled unasked."""
        return self.asked is not None and self.asked.bytes_ <= BYTES_UNASKED

    def start(self) -> None:
        """Count now, whatever the size."""
        if self.asked is not None and self._counting is None:
            self._become("counting")
            self._counting = Counting(self.asked.dataset, self.asked.parameters)

    def stop(self) -> None:
        """End the process that counts, if there is one."""
        counting, self._counting = self._counting, None
        if counting is not None:
            counting.stop()

    def _become(self, status: str, found: Mapping[str, Any] | None = None) -> None:
        """Set the status, with the profile or the error in `found`."""
        self.stop()
        found = dict(found or {})
        with self.hold_trait_notifications():
            self.problem = found.pop("error", "")
            self.profile, self.status = found, status


def asked_of(choices: Mapping[str, Any]) -> ProfileRequest | None:
    """Subject that these choices name; None if it is no file, or what is read is not sound or not complete yet."""
    if not files_of(choices["dataset"]) or suited.find_file_errors(choices):
        return None
    chosen = drop_unread_files(choices)
    read = {name: chosen[name] for name in ("dataset", *OF_FILE) if chosen[name] not in ("", NATURAL)}
    paths = {name: Path(read[name]).expanduser().resolve() for name in FILES if name in read}
    try:
        parameters = parameters_of_file(read | {name: str(path) for name, path in paths.items()})
    except data.DataError:  # it is among what the panel says is wrong
        return None
    known = data.get(read["dataset"]).parameters
    if any(known[name] is inspect.Parameter.empty and name not in parameters for name in known):
        return None
    return ProfileRequest(read["dataset"], parameters, sum(map(_bytes, paths.values())), suited.file_stamps(choices))


def _bytes(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder, counted as far as decides whether it is asked for."""
    if not path.is_dir():
        return path.stat().st_size
    total = 0
    for place, _, names in os.walk(path):
        total += sum(Path(place, name).stat().st_size for name in names if Path(place, name).is_file())
        if total > BYTES_UNASKED:
            break
    return total
