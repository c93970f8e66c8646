"""Synthetic rows of the self-trial: trials of a recording, of a candidate against itself, and outcomes."""

import numpy as np

from benchmarks.loads import QUIET
from benchmarks.self_trial import trials
from benchmarks.self_trial.noise import HALVES, Group, Noise
from workbench import store
from workbench.measure import machine
from workbench.sweeps.trial import settings_of


def trial(
    configuration, name: str, number: int, seconds: float, part: str = "noise", load: str = "quiet", **more
) -> dict:
    """The row of one trial."""
    own = {
        "key": trials.key_of(configuration, name),
        "run": "one",
        "round": number,
        "experiment": trials.experiment(part, load),
    }
    own |= {"status": "ok", "seconds_step": seconds, "machine": machine.machine_id(), "busy_others": 0.0}
    return store.new_row(**settings_of(configuration) | own | more)


def recording(rounds: int, sd: float = 0.3, common: float = 0.0, seed: int = 0) -> list[dict]:
    """Rows of a recording of two groups: lognormal noise of each trial, and of each round in common."""
    random, rows = np.random.default_rng(seed), []
    for group in trials.groups()[:2]:
        for number in range(rounds):
            shared = common * random.standard_normal()
            rows += [
                trial(configuration, half, number, float(np.exp(shared + sd * random.standard_normal())))
                for half in HALVES
                for configuration in group.values()
            ]
    return rows


def normal_noise(sd: float = 0.3, rounds: int = 4000, seed: int = 0) -> Noise:
    """Noise of independent normal trials, each with sd / sqrt(2): a ratio has `sd`."""
    random = np.random.default_rng(seed)
    logs = sd / 2**0.5 * random.standard_normal((rounds, 3, 2))
    return Noise({QUIET: (Group(logs, np.zeros(logs.shape, bool), np.arange(rounds), np.ones(logs.shape)),)})


def shares() -> list[dict]:
    """Outcomes of the simulations and of candidates against themselves."""
    rows = [
        trials.share_row("coverage", f"holds, {truth:g} x", "recorded", 95, 100, (None, None), truth=truth, **one)
        for truth in (1.0, 1.5, 2.0)
        for one in [{"candidates": 1, "rounds": 9.0}]
    ]
    rows.append(trials.share_row("coverage", "storages", "recorded", 285, 300, (0.93, 0.97), candidates=1))
    rows.append(
        trials.share_row("power", "decided", "recorded", 50, 100, (0.75, None), truth=1.5, candidates=1, rounds=8.0)
    )
    for condition, limits in (("all", (None, 0.05)), ("quiet", (None, None))):
        rows.append(trials.share_row("same", "winner", condition, 3, 90, limits, truth=1.0, candidates=1, rounds=11.0))
    return rows


class Measured:
    """Trials that take a second, or what `seconds` says, in place of real ones."""

    rows = ()
    seconds = staticmethod(lambda task, work: 1.0)

    def __init__(self, file, experiment, work=""):
        self.file, self.experiment, self.work = file, experiment, work
        self.supervisor = type("Supervisor", (), {"run_name": "one"})()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def measure(self, task):
        own = {"key": task.key, "experiment": self.experiment}
        row = trial(task.configuration, "", task.round, self.seconds(task, self.work)) | own
        row |= {"seconds_update": 0.6}
        self.rows.append(row)
        store.append(self.file, row)
        return row

    measure_once = measure

    def measure_in_turns(self, tasks):
        return [self.measure(task) for task in tasks]
