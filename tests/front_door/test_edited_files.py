"""Files that the project reads back, edited by hand: each is read, or refused by an error that names the file."""

import copy
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from tests.support import rows
from tests.support.mutations import WILD, damaged_bytes, draws
from workbench import data, store, training
from workbench.data.errors import DataError
from workbench.data.stored import converting
from workbench.data.tables.columns import columns_of
from workbench.panels import state
from workbench.reports import page
from workbench.store import RowError
from workbench.sweeps import run_folder, spec
from workbench.sweeps.progress import Progress
from workbench.sweeps.run_folder import RunError
from workbench.sweeps.spec import SpecError
from workbench.training.trained import ModelFolderError, TrainedModel, load_model

RAW = ("KeyError", "TypeError", "AttributeError", "IndexError", "has no attribute", "unsupported operand", "Error:")
"""What no message of ours holds."""


def make_model(folder: Path) -> None:
    made = data.load("uniform", rows=40, features=8, density=0.4, classes=3, cache=False)
    run = training.make_run(training.Setup(model="softmax"), made.x, made.y, 3)
    TrainedModel.of_run(run, made).save(folder)


def use_model(folder: Path) -> None:
    loaded = load_model(folder)
    assert len(loaded.predict(scipy.sparse.csr_array((2, loaded.features), dtype=np.float32))) == 2


def make_run(folder: Path) -> None:
    folder.mkdir()
    axes = {"dataset": "uniform", "reading": "rows=40, features=8", "model": "logistic", "threads": 1}
    (folder / "spec.json").write_text(spec.dump_spec(spec.validate_spec({"name": "own", "axes": axes})))
    (folder / "machine.json").write_text(json.dumps({"id": "m", "cpu": "a cpu", "cores": 2, "caches": {"L1": 1}}))
    (folder / "plan.json").write_text(json.dumps({"keys": ["k"], "dropped": {"a reason": 2}}))
    (folder / "choices.json").write_text(json.dumps({"given": {"a": 1}, "chosen": {"b": [1]}}))
    run_folder.write_progress(folder, Progress("own", "finished", done=3))
    (folder / "trials.jsonl").write_text(json.dumps(rows.sweep(rounds=1)[0]))


def make_stored(folder: Path) -> None:
    made = data.load("uniform", rows=40, features=8, density=0.4, classes=3, cache=False)
    converting.convert(made, folder)


FILES: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any], type[Exception]]] = {
    "model.json": (make_model, use_model, ModelFolderError),
    "meta.json": (make_stored, lambda folder: data.load("sparse", path=folder), DataError),
    "spec.json": (make_run, run_folder.read_spec, RunError),
    "plan.json": (make_run, run_folder.read_current_records, RowError),
    "machine.json": (make_run, lambda folder: page.machine_table(folder, []), RowError),
    "progress.json": (make_run, run_folder.read_progress, RunError),
    "choices.json": (make_run, state.chosen_of, RowError),
    "trials.jsonl": (make_run, lambda folder: store.frame(store.read(folder)), RowError),
}
"""Of each file: what makes its folder, what reads it, and the error that refuses it."""


def edited(value: Any) -> Iterator[Any]:
    """Copies with one value, at any depth, left out or replaced by each of a number of unlikely ones."""
    places = [((), value)]
    for path, here in places:
        for key in here if isinstance(here, dict) else range(len(here)) if isinstance(here, list) else ():
            places.append(((*path, key), here[key]))
    for path, _ in places[1:]:
        for other in ("left out", *WILD):
            made = copy.deepcopy(value)
            holder = made
            for key in path[:-1]:
                holder = holder[key]
            if other == "left out":
                del holder[path[-1]]
            else:
                holder[path[-1]] = other
            yield made
    yield from WILD


@pytest.fixture(params=FILES)
def opened(request, tmp_path):
    """A folder with the file, its path, what reads the folder, and the error that refuses it."""
    make, use, error = FILES[request.param]
    make(tmp_path / "f")
    return tmp_path / "f", tmp_path / "f" / request.param, use, error


def check(folder: Path, path: Path, use: Callable, error: type[Exception]) -> bool:
    """Return whether the file is taken; fail unless a refusal is of that type and names it in one or two lines."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f".*{path.name}( is damaged|: left out)")
        try:
            use(folder)
        except error as refused:
            message = str(refused)
            assert str(folder) in message
            assert not any(word in message for word in RAW), message
            return False
    return True


def test_as_written_it_is_taken(opened):
    assert check(*opened)


def test_values_left_out_or_replaced_are_taken_or_refused_by_name(opened):
    _, path, *_ = opened
    refused = 0
    documents = list(edited(json.loads(path.read_text())))
    for document in documents[:: max(len(documents) // 150, 1)]:
        path.write_text(json.dumps(document, ensure_ascii=True))
        refused += not check(*opened)
    assert refused or path.name in ("choices.json", "machine.json", "plan.json", "progress.json")


def test_damaged_bytes_are_taken_or_refused_by_name(opened):
    _, path, *_ = opened
    whole = path.read_bytes()
    for _, source in draws(30):
        path.write_bytes(damaged_bytes(source, whole))
        check(*opened)


COLUMNS = {
    "columns": {"age": {"kind": "number"}, "city": {"kind": "category", "values": ["a"]}, "l": {"kind": "label"}}
}
SPEC = {"name": "a", "axes": {"density": [0.1], "threads": 1}, "measure": {"samples": 3}, "limits": {}, "seed": 1}


@pytest.mark.parametrize(
    ("document", "use", "error"),
    [(COLUMNS, lambda one: columns_of(one, "c.toml"), DataError), (SPEC, spec.validate_spec, SpecError)],
    ids=["columns.toml", "spec.toml"],
)
def test_what_users_write_as_toml_is_taken_or_refused(document, use, error):
    refused = 0
    for one in filter(lambda one: isinstance(one, dict), edited({"separator": ","} | document)):
        message = ""
        try:
            with warnings.catch_warnings(action="ignore", category=FutureWarning):
                use(one)
        except error as error_of_ours:
            message = str(error_of_ours)
            refused += 1
        assert not any(word in message for word in RAW)
    assert refused > 100
