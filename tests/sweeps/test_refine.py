"""A sweep that is asked to adds densities around its break-even by itself, and finds them done when it is resumed."""

import json
import shutil
import zlib
from dataclasses import replace

import numpy as np
import pytest

from tests.support import rows as made
from tests.support.tiny_sweeps import QUICK, spec_of
from workbench import store
from workbench.analysis.breakeven import breakeven
from workbench.sweeps import run_folder
from workbench.sweeps.runner import Supervisor

LAWS = {"csr": replace(made.SPARSE, bytes_slope=0.0), "dense": made.DENSE}


class Measured(Supervisor):
    """A supervisor whose trials come from a law; their records have the settings of the configuration, as real ones."""

    seed = 0

    def do(self, task):
        law = LAWS[task.configuration.format]
        chosen = task.configuration
        place = f"{self.seed} {chosen.format} {chosen.density}"  # not the key, which changes with the code
        drawn = np.random.default_rng(zlib.crc32(place.encode()) + task.round)
        settings = {name: value for name, value in task.configuration.model_dump().items() if name in store.COLUMNS}
        del settings["density"]
        known = settings | {"key": task.key, "round": task.round, "run": self.run_name}
        return made.row(law, task.configuration.density, drawn, noise=0.004, **known)


def worked(folder, until=0.1, seed=0) -> list[dict]:
    measure = {**QUICK, "rounds": 12, **({"until": until} if until else {})}
    folder.mkdir(exist_ok=True)
    supervisor = Measured(spec_of(measure=measure, density=[0.003, 0.03, 0.3]), folder, work="a law")
    supervisor.seed = seed
    supervisor.run()
    assert run_folder.read_progress(folder).state == "finished"
    return store.read(folder)


@pytest.fixture(scope="module")
def refined(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refined")
    worked(folder)
    return folder


def test_densities_are_added_until_the_break_even_is_as_narrow_as_asked(tmp_path, refined):
    coarse, fine = worked(tmp_path / "coarse", until=None), store.read(refined)
    assert {row["density"] for row in coarse} == {0.003, 0.03, 0.3}
    new = {row["density"] for row in fine} - {0.003, 0.03, 0.3}
    assert len(new) >= 2
    assert all(0.03 < density < 0.3 for density in new)
    [even] = breakeven(store.frame(fine))
    assert even.high <= 1.15 * even.low  # where densities are near enough, noise alone keeps it wider than asked
    planned = json.loads((refined / run_folder.PLAN).read_text())["keys"]
    assert set(planned) == {row["key"] for row in fine}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 8))])
def test_what_was_added_is_not_measured_again_by_a_resume(tmp_path, refined, seed):
    if seed:
        worked(tmp_path / "run", seed=seed)
    else:
        shutil.copytree(refined, tmp_path / "run")
    first = store.read(tmp_path / "run")
    assert len(worked(tmp_path / "run", seed=seed)) == len(first)
    state = run_folder.read_progress(tmp_path / "run")
    assert state.done == state.reused == len(first)


def test_no_density_is_added_after_the_budget_is_out(tmp_path, monkeypatch):
    monkeypatch.setattr(Measured, "is_budget_out", lambda self: bool(self.state.done >= 12 and self.say()))
    monkeypatch.setattr(Measured, "say", lambda self: setattr(self.state, "message", "out") or True, raising=False)
    assert {row["density"] for row in worked(tmp_path / "run")} <= {0.003, 0.03, 0.3}
