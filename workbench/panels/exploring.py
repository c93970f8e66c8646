"""State of looking at a stored run: the rows left by filters, the density and the cell that are looked at.

It knows folders and files of rows, and no Jupyter. What varies in the rows may be filtered by; the dense baseline stays
whatever configuration is chosen, since without it there is nothing to compare with.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import traitlets

from kernels.registry import unknown_name
from workbench import settings, store
from workbench.analysis import configurations, formatting
from workbench.panels.state import file_stamp
from workbench.study.choices import BY_NAME, ChoiceError, parse_numbers
from workbench.sweeps import run_folder

ALL = "all"
OF_COLUMN = {setting.column or setting.name: setting for setting in settings.SETTINGS}
LABELS = {"rows_trained": "Rows trained on", "machine": "Machine", "index_dtype": "Index type", "density": "Density"}
MOST_PLACES, LEAST_PLACES = 41, 5
"""Places of the slider between the lowest and the highest density, those measured among them."""
GAINS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)
"""Places of the slider of gains."""


class Filter(NamedTuple):
    """A column of rows that varies, what it is called, and its values by what they are called."""

    name: str
    label: str
    options: Mapping[str, Any]


class Behind(NamedTuple):
    """A cell: its row as the analysis pools it, and the trial rows that it is pooled from."""

    pooled: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]


class Exploration(traitlets.HasTraits):
    """Exploration of the rows in `run`, a run folder or a file of rows (`run_folder.RunError` where it is none).

    `rows` are the records that pass every filter; `chosen` has the chosen options by filter name. `density` and
    `factor` are asked about in the table of gains, `cell` is the name of one of `configurations`.
    """

    run = traitlets.Unicode()
    every = traitlets.Tuple()
    chosen = traitlets.Dict()
    rows = traitlets.Tuple()
    density = traitlets.Float(None, allow_none=True)
    factor = traitlets.Float(2.0)
    cell = traitlets.Unicode()
    outdated = traitlets.Unicode()

    def __init__(self, run: str) -> None:
        super().__init__()
        self.run, self.folder = run, Path(run)
        self._read: tuple[tuple[int, int], ...] = ()
        self._framed: tuple | None = None
        self._frame, self._cells = store.frame(), dict[str, Behind]()
        if not self.folder.is_file():
            run_folder.read_progress(self.folder)
        self.poll()

    def poll(self) -> None:
        """Read rows that are new."""
        stamp = tuple(map(file_stamp, (self.folder, self.folder / store.FILE, self.folder / run_folder.PLAN)))
        if stamp != self._read:
            self._read = stamp
            self.every = tuple(
                run_folder.read_current_records(self.folder) if self.folder.is_dir() else store.read(self.folder)
            )
            self._leave()

    @property
    def alive(self) -> bool:
        """Whether its sweep is at work."""
        return self.folder.is_dir() and run_folder.read_progress(self.folder).alive

    @property
    def is_timed(self) -> bool:
        """Whether a trial of its sweep is being timed, beside which nothing should be computed."""
        return self.folder.is_dir() and run_folder.read_progress(self.folder).is_timed

    @property
    def filters(self) -> list[Filter]:
        """Settings that distinguish records and can be filtered by; of several that split them equally only one."""
        found, parted = [], set()
        for name in ("density", *configurations.LINE, *configurations.GROUP, *configurations.BEST):
            texts = [("" if _is_kept(row, name) else _text(name, row)) for row in self.every]
            options = _options(name, texts, self.every)
            met = {text: number for number, text in enumerate(dict.fromkeys(texts))}
            parting = tuple(met[text] if text else None for text in texts)
            if len(options) > 1 and parting not in parted:
                found.append(Filter(name, _label(name), options))
                parted.add(parting)
        return found

    def choose(self, name: str, option: str) -> None:
        """Leave those rows only of which the filter's value is called so, or all (`ChoiceError`)."""
        known = {filter.name: filter for filter in self.filters}
        if name not in known:
            raise ChoiceError(unknown_name("filter", name, known))
        if option not in (ALL, *known[name].options):
            raise ChoiceError(f"{known[name].label}: {option!r} is none of {', '.join(known[name].options)}.")
        self.chosen = {key: value for key, value in {**self.chosen, name: option}.items() if value != ALL}
        self._leave()

    def _leave(self) -> None:
        """Bring what is left up to date; who observes hears of it when all of it is."""
        with self.hold_trait_notifications():
            self.rows = tuple(row for row in self.every if all(_stays(row, *one) for one in self.chosen.items()))
            if self.density is None and self.densities:
                self.density = self.densities[len(self.densities) // 2]
            if self.cell not in self.cells:
                self.cell = next(iter(self.cells), "")

    @property
    def left(self) -> str:
        """Number of rows that are shown, and what was chosen, in words."""
        if not self.chosen:
            return f"All {formatting.format_count(len(self.every), 'row')} of {self.run}."
        said = ", ".join(f"{_label(name)} {option}" for name, option in self.chosen.items())
        kept = "; dense stays" if any(name in configurations.LINE for name in self.chosen) else ""
        return f"{len(self.rows)} of {formatting.format_count(len(self.every), 'row')} of {self.run}: {said}{kept}."

    @property
    def frame(self) -> pd.DataFrame:
        """The rows that are left, as the analysis and the charts take them."""
        self._know()
        return self._frame

    @property
    def cells(self) -> dict[str, Behind]:
        """The cells of the rows that are left, by name."""
        self._know()
        return self._cells

    def _know(self) -> None:
        """Update the pooled rows and names if the filtered rows have changed."""
        if self._framed is self.rows:
            return
        self._framed, self._frame = self.rows, store.frame(self.rows)
        behind = list(configurations.cells_of(self._frame).values())
        pooled = configurations.records(configurations.pool_rounds(self._frame))
        names = configurations.names_of(pooled)
        self._cells = {name: Behind(row, rows) for name, row, rows in zip(names, pooled, behind, strict=True)}

    @property
    def densities(self) -> list[float]:
        """The densities measured, rising."""
        return sorted({density for cell in self.cells.values() if (density := configurations.density_of(cell.pooled))})

    def places(self) -> list[float]:
        """Return the densities to choose from: those measured, and some between them on the logarithmic axis."""
        known = self.densities
        if len(known) < 2:
            return known
        between = max(LEAST_PLACES, (MOST_PLACES - 1) // (len(known) - 1))
        inner = (
            low * (high / low) ** (place / between) for low, high in pairwise(known) for place in range(1, between)
        )
        return sorted([*known, *inner])

    def ask_density(self, text: str) -> None:
        """Look at another density, typed as a share or in per cent (`ChoiceError`)."""
        self.density = _positive(text, "Density", most=1.0)

    def ask_factor(self, text: str) -> None:
        """Ask for another gain, typed as a factor (`ChoiceError`)."""
        self.factor = _positive(text.strip().removesuffix("x"), "Gain")


def _positive(text: str, label: str, most: float = float("inf")) -> float:
    """Return the number in a text field; ChoiceError, naming the field, unless it is in (0, most]."""
    try:
        values = parse_numbers(BY_NAME["densities"], text)
    except ChoiceError:
        values = []
    value = values[0] if len(values) == 1 else None
    if value is None or not 0 < value <= most:
        raise ChoiceError(f"{label}: {text!r} is not one number above 0{', 100 % at most' if most == 1 else ''}.")
    return value


def _stays(row: Mapping[str, Any], name: str, option: str) -> bool:
    """Return whether a row is left by a filter: it has the value, does not know it, or is the baseline."""
    return _is_kept(row, name) or _text(name, row) in (option, "")


def _is_kept(row: Mapping[str, Any], name: str) -> bool:
    """Return whether a row stays whatever is chosen of a filter: the baseline of all configurations."""
    return name in configurations.LINE and configurations.is_dense(row)


def _options(name: str, texts: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values of a column by what they are called, in their order."""
    values = {text: row[name] for text, row in zip(texts, rows, strict=True) if text}
    return dict(sorted(values.items(), key=lambda item: (item[1] is not None, _order(item[1]))))


def _order(value: Any) -> tuple[bool, float, str]:
    """Return a sort key for filter options: numbers first."""
    is_number = isinstance(value, int | float)
    return not is_number, float(value) if is_number else 0.0, "" if is_number else str(value)


def _text(name: str, row: Mapping[str, Any]) -> str:
    """Return a value in words; empty if a row does not know it."""
    if name == "density":
        return configurations.density_label(row)
    setting = OF_COLUMN.get(name)
    value = row[name]
    if setting is not None and value is None:
        value = settings.value_or_default(setting.name, None) if setting.role == "line" else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (setting.say(value) if setting is not None else str(value)) or str(value)


def _label(name: str) -> str:
    """Return the label of a column in filters."""
    setting = OF_COLUMN.get(name)
    if name in LABELS or setting is None:
        return LABELS.get(name, name)
    return setting.control.label if setting.control else setting.name.replace("_", " ").capitalize()
