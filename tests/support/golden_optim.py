"""Recorded trajectories of optimizers: 20 steps of one parameter, weights and states after some of them.

Which of our rules a recorded one is, under which options, and whether it was lazy there, is told here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.updates.adam import corrected
from tests.support.golden_cases import STYPES, Differs, close_to, dense, read
from workbench import formats, optimizers
from workbench.optimizers.schedules import Schedule

RULES: dict[str, tuple[str, dict[str, str], dict[str, float], tuple[str, ...]]] = {
    "SGD": ("momentum", {"momentum": "beta"}, {"learning_rate": 0.01}, ("mom",)),
    "NAG": ("nesterov", {"momentum": "beta"}, {"learning_rate": 0.1}, ("mom",)),
    "Adam": ("adam", {}, {"learning_rate": 0.001}, ("mean", "var")),
    "AdaGrad": ("adagrad", {"eps": "epsilon"}, {"learning_rate": 0.01, "epsilon": 1e-7}, ("history",)),
    "GroupAdaGrad": ("group_adagrad", {"eps": "epsilon"}, {"learning_rate": 0.01, "epsilon": 1e-5}, ("history",)),
    "Ftrl": ("ftrl", {"lamda1": "l1"}, {"learning_rate": 0.1, "l1": 0.01, "beta": 1.0}, ("z", "n")),
    "RMSProp": ("rmsprop", {"gamma1": "gamma"}, {"learning_rate": 0.001, "gamma": 0.9, "epsilon": 1e-8}, ("n",)),
    "Signum": ("signum", {"momentum": "beta", "wd_lh": "decoupled"}, {"learning_rate": 0.01, "beta": 0.9}, ("mom",)),
}
"""Theirs -> ours, their names of numbers, defaults that differ from ours, their names of our states in our order."""

NUMBERS = {"learning_rate": "learning_rate", "wd": "decay", "rescale_grad": "rescale", "clip_gradient": "clip"}
"""Names of numbers that all of theirs have."""

ONLY_OFF = ("RMSProp", "Signum", "NAG")
"""Rules that there have no lazy form."""


def _rounded(number: float) -> float:
    """As numbers reached their kernels, also those that work in float64."""
    return float(np.float32(number))


@dataclass(frozen=True)
class TheirCorrection(Schedule):
    """Adam's rates such that, bias corrections included, they are theirs: computed in float64 before numbers were
    rounded, and then rounded. It matters for float64 weights."""

    base: float
    beta1: float
    beta2: float

    def rate(self, step: int, base: float) -> float:
        theirs = _rounded(corrected(self.base, self.beta1, self.beta2, step))
        return theirs / corrected(1.0, _rounded(self.beta1), _rounded(self.beta2), step)


def updater_of(case: Mapping[str, Any], lazy: str) -> tuple[optimizers.Updater, tuple[str, ...]]:
    """Ours for a case, and their names of its states."""
    name, numbers, defaults, states = RULES[case["optimizer"]]
    hyper = {**case["hyper"]}
    if hyper.pop("centered", False):
        name, numbers, states = "centered_rmsprop", {**numbers, "gamma2": "beta"}, ("n", "g", "delta")
    if name == "momentum" and not hyper.get("momentum"):
        hyper.pop("momentum", None)
        name, states = "sgd", ()
    if name == "signum" and hyper.get("momentum") == 0:  # their signSGD: the decay is not part of the sign
        hyper["wd_lh"], states = hyper.pop("wd", 0.0), ()
    known = {**NUMBERS, **numbers}
    options = optimizers.get(name).options | defaults | {known.get(key, key): value for key, value in hyper.items()}
    schedule = TheirCorrection(options["learning_rate"], options["beta1"], options["beta2"]) if name == "adam" else None
    options = {key: _rounded(value) for key, value in options.items()}
    return optimizers.Updater(name, lazy=lazy, schedule=schedule, **options), states


def _lazy(case: Mapping[str, Any]) -> str:
    if case["lazy_update"] is not None:
        return "on" if case["lazy_update"] else "off"
    standard = case["optimizer"] in ONLY_OFF or (case["optimizer"] == "Ftrl" and case["weight_stype"] == "default")
    return "off" if standard else "on"


def gradients(case: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> list:
    """One for each step, in the case's format."""
    results = case["grads"]
    shape, ends = tuple(results["shape"]), np.cumsum(read(arrays, results["count"]))
    parts = [np.split(read(arrays, results[name]), ends[:-1]) for name in ("data", "indices")]
    made = [formats.RowSparse(values, rows, shape) for values, rows in zip(*parts, strict=True)]
    return [formats.to_format(g, STYPES[case["grad_stype"]]) for g in made]


def run(case: Mapping[str, Any], arrays: Mapping[str, np.ndarray], differs: Differs) -> None:
    """Weights and states at each snapshot, formats of states, and whether a sparse rule was there.

    What the dense rule did there is compared with ours twice: as lazy="off", and as "exact", which must be the same.
    """
    lazy = _lazy(case)
    for way in ("off", "exact") if lazy == "off" else (lazy,):
        _train(case, arrays, way, differs)
    if case["fallback"]:
        differs("fallback", 0)


def _train(case: Mapping[str, Any], arrays: Mapping[str, np.ndarray], lazy: str, differs: Differs) -> None:
    updater, names = updater_of(case, lazy)
    weights = read(arrays, case["weight0"]).copy()
    if case["weight_stype"] == "row_sparse":
        weights = formats.RowSparse(weights, np.arange(len(weights)), weights.shape)
    after = {number: place for place, number in enumerate(case["snapshot_after_steps"])}
    for number, gradient in enumerate(gradients(case, arrays), 1):
        updater.update({"w": weights}, {"w": gradient})
        if number in after:
            updater.catch_up({"w": weights})
            states = dict(zip(names, updater.states["w"], strict=bool(names)))
            _compare(case, arrays, after[number], weights, states, differs)
    assert updater.steps == {"w": case["grads"]["steps"]}
    came = {name: formats.format_of(state) for name, state in states.items()}
    if came != {name: STYPES[stype] for name, stype in case["state_stypes_at_creation"].items()}:
        differs("state_stypes", came)


def _compare(case, arrays, place: int, weights, states: Mapping[str, Any], differs: Differs) -> None:
    """Weights and states with those recorded at a snapshot."""
    close_to(dense(weights), read(arrays, case["weight"])[place], case, differs, "value")
    assert states.keys() == case["states"].keys()
    for name, state in states.items():
        close_to(dense(state), read(arrays, case["states"][name])[place], case, differs, f"state_{name}")
