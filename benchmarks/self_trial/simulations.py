"""The parts on recorded noise: the constants of the statistics estimated from it, and simulations that judge them.

The simulations count how often intervals hold the truth, stated probabilities are right, and differences are seen.
Constants are estimated by moments, from every second group of the recording; the simulations use the other groups. All
are standard deviations or shares of the logarithm of the ratio of two candidates in a round, as in
`workbench.measure.posterior.Noise`.

True ratios are those of a mixed practice: most within a factor of ten of 1, some large; other sparse candidates lie
within 30 % of the first.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np

from benchmarks.loads import LOADS, QUIET
from benchmarks.self_trial.noise import Group, Noise
from benchmarks.self_trial.trials import CANDIDATE_SETTINGS, outcome, share_row
from workbench.measure.posterior import NOISE, Scatter, Trial, residuals, usual_scatter
from workbench.measure.rounds import MOST, Decision, decide_comparison

FITTED, JUDGED = 0, 1
"""First group of those that constants are fitted to, and of those that they are judged on."""
PAIRS = tuple(combinations(range(len(CANDIDATE_SETTINGS)), 2))
CONSTANTS = ("process", "shared", "wider", "bias", "unrest")


class Components(NamedTuple):
    """Variance of the log ratio of a pair: of rounds of one set, of sets of processes, of runs."""

    round: float
    process: float
    shared: float


def constants(noise: Noise) -> Iterator[dict[str, Any]]:
    """Yield an outcome per noise constant: measured / in use, "failed" if the recording does not show it."""
    measured = estimates(noise.every_second(FITTED))
    for name in CONSTANTS:
        used, value = getattr(NOISE, name), measured[name]
        known: dict[str, Any] = {"status": "failed", "reason": "The recording does not show it."}
        if math.isfinite(value):
            known = {"ratio": value / used, "low": value / used, "high": value / used, "truth": value}
        yield outcome("constants", f"{name}: measured / in use", "half of the groups", **known)


def estimates(noise: Noise) -> dict[str, float]:
    """Return {constant: its value estimated from the recorded noise}, NaN where it cannot be estimated. O(rounds)."""
    quiet = mean_components([components(logs, group.sets) for group in noise.groups[QUIET] for logs in ratios(group)])
    total = quiet.round + quiet.process
    loaded = [group for load, groups in noise.groups.items() if load != QUIET for group in groups]
    rounds = [
        (components(*_rounds(logs, group, True)).round / quiet.round - 1) / _mean_severity(group) ** 2
        for group in loaded
        for logs in ratios(group)
    ]
    rounds = [one for one in rounds if math.isfinite(one)]
    wider = math.sqrt(max(1 + float(np.mean(rounds)), 0.0)) if rounds else math.nan
    return {
        "process": quiet.process / total,
        "shared": quiet.shared / total,
        "wider": wider,
        "bias": _bias(loaded, is_disturbed=True),
        "unrest": _bias(loaded, is_disturbed=False),
    }


def ratios(group: Group) -> Iterator[np.ndarray]:
    """Yield the log time ratio of each pair of candidates, [rounds, halves]."""
    for first, second in PAIRS:
        yield group.logs[:, first] - group.logs[:, second]


def components(logs: np.ndarray, sets: np.ndarray) -> Components:
    """Return the variance components (round, process, run) of a pair's log ratios [rounds, halves].

    `sets` [rounds] has a number per set of processes. All are NaN if no set has two rounds.
    """
    own = [logs[sets == number] for number in dict.fromkeys(sets.tolist())]
    own = [one for one in own if len(one) > 1]
    if not own:
        return Components(math.nan, math.nan, math.nan)
    within = float(np.mean([one.var(0, ddof=1).mean() for one in own]))
    length = float(np.mean([len(one) for one in own]))
    means = np.array([one.mean(0) for one in own])
    process = max(float(means.var(1, ddof=1).mean()) - within / length, 0.0)
    among = float(means.mean(1).var(ddof=1)) if len(own) > 1 else math.nan
    return Components(within, process, max(among - process / 2 - within / length / 2, 0.0))


def mean_components(found: Sequence[Components]) -> Components:
    """Return the mean of each variance component over its finite values, NaN if there is none."""
    known = ([one for one in column if math.isfinite(one)] for column in zip(*found, strict=True))
    return Components(*(float(np.mean(column)) if column else math.nan for column in known))


def _rounds(logs: np.ndarray, group: Group, is_disturbed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return (logs, sets) of the rounds in which all trials were disturbed, or with False none.

    `logs` is [rounds, halves] of the recorded rounds of `group`.
    """
    trials = group.disturbed.reshape(len(group.disturbed), -1)
    chosen = trials.all(1) if is_disturbed else ~trials.any(1)
    return logs[chosen], group.sets[chosen]


def _bias(groups: Sequence[Group], is_disturbed: bool) -> float:
    """Return the standard deviation, over pairs and groups, of the shift of a log ratio by a load; NaN without rounds.

    Of disturbed rounds it is relative to their severity. The variance of a mean of few rounds is subtracted.
    """
    squares = []
    for group in groups:
        for logs in ratios(group):
            own, _ = _rounds(logs, group, is_disturbed)
            if len(own) > 1:
                means = own.mean(1)
                square = float(means.mean()) ** 2 - float(means.var(ddof=1)) / len(means)
                squares.append(square / _mean_severity(group) ** 2 if is_disturbed else square)
    return math.sqrt(max(float(np.mean(squares)), 0.0)) if squares else math.nan


def _mean_severity(group: Group) -> float:
    """Return the mean severity of a group's disturbed trials, 1.0 if there is none."""
    return float(group.severity[group.disturbed].mean()) if group.disturbed.any() else 1.0


# Simulated comparisons: their noise is taken from recorded rounds, their truth is known, their answer is the design's.
#
# A comparison takes consecutive recorded rounds from a random one on, so neighbours in time stay neighbours, and spells
# and two-peaked rounds stay as they were. Its answer is that of `rounds.decide_comparison` with the scatter that all
# comparisons of its sweep show, as in a sweep.


CSR, VENDOR, DENSE = range(3)
"""Places of the candidates in a recording."""
SLOTS = ((CSR, 0), (VENDOR, 0), (CSR, 1), (VENDOR, 1))
"""Noise of sparse candidates as (candidate, half); more of them have these again, with `OWN` of their own."""
OWN = 0.1
"""Standard deviation of the logarithm that a candidate has for itself which shares a slot with another one."""
BASELINE = "dense"
COMPARISONS = 6
"""Comparisons of a simulated sweep."""
PREDICTION_ERRORS = (0.5, 0.9)
"""Standard deviations of the logarithm of predicted ratios: above that of `sweeps.predicted`, on data like its own."""
BADLY_OFF = 0.1
PREDICTION_OWN = 0.2
"""Standard deviation of the logarithm that a sparse candidate's prediction has for itself."""


@dataclass(frozen=True)
class Answer:
    """Answer of one simulated comparison, and the logarithm of the true ratio of the two sides that it names."""

    decision: Decision
    truth: float

    @property
    def holds(self) -> bool:
        """Whether the 95 % interval contains the true ratio."""
        ratio = self.decision.ratio
        return ratio is not None and ratio.low <= math.exp(self.truth) <= ratio.high

    @property
    def bounds(self) -> bool:
        """Whether the true ratio is at least the stated bound: >= the lower one above 1, else <= the upper one."""
        ratio = self.decision.ratio
        if ratio is None:
            return False
        return ratio.low <= math.exp(self.truth) if ratio.value > 1 else math.exp(self.truth) <= ratio.high

    @property
    def stated(self) -> float:
        """Probability stated for the likelier side, 0.5 to 1."""
        ratio = self.decision.ratio
        return max(ratio.probability, 1 - ratio.probability) if ratio else 0.5

    @property
    def is_right(self) -> bool:
        """Whether the side stated as likelier is the truly faster one."""
        ratio = self.decision.ratio
        return ratio is not None and (ratio.probability > 0.5) == (self.truth > 0)

    @property
    def width(self) -> float:
        """Natural log of the upper over the lower bound, inf without a ratio."""
        ratio = self.decision.ratio
        return math.log(ratio.high / ratio.low) if ratio else math.inf


def answers(
    noise: Noise, load: str, rounds: int, truths: Sequence[Sequence[float]], random: np.random.Generator
) -> list[Answer]:
    """Return the answers of simulated comparisons, one for each of `truths`; [] if the load has too few rounds.

    Each truth has the natural logs of dense / sparse of the sparse candidates. O(rounds^3) each. `noise` is the
    recording, `random` the generator that draws from it.
    """
    groups = [group for group in noise.groups.get(load, ()) if len(group.logs) >= rounds]
    if not groups:
        return []
    found: list[Answer] = []
    for first in range(0, len(truths), COMPARISONS):
        of_sweep = truths[first : first + COMPARISONS]
        every = [_trials(groups[random.integers(len(groups))], rounds, truth, random) for truth in of_sweep]
        usual = usual_scatter(map(residuals, every))
        found += [_answer(*one, usual, random) for one in zip(every, of_sweep, strict=True)]
    return found


def _answer(trials: Sequence[Trial], truth: Sequence[float], usual: Scatter, random: np.random.Generator) -> Answer:
    """Return the decision on simulated trials with the true log ratio of the sparse candidate that it names.

    `usual` is the scatter of the rounds of its sweep. `truth` has the natural log of dense / sparse of each sparse
    candidate.
    """
    scatter = usual.shrunk(*residuals(trials))
    decision = decide_comparison(trials, {BASELINE}, _predictions(truth, random), scatter)
    named = int(decision.sparse) if isinstance(decision.sparse, int) else 0
    return Answer(decision, truth[named])


def _predictions(truth: Sequence[float], random: np.random.Generator) -> dict[Hashable, float]:
    """Return {candidate: seconds as a cost model would predict them}, for true log ratios `truth`.

    Good in half of the comparisons and worse in the other; a tenth is off by more than either.
    """
    off = random.choice(PREDICTION_ERRORS) * random.standard_normal()
    off += random.standard_normal() if random.random() < BADLY_OFF else 0.0
    own = PREDICTION_OWN * random.standard_normal(len(truth))
    pairs = enumerate(zip(truth, own, strict=True))
    return {BASELINE: 1.0} | {place: math.exp(off + more - one) for place, (one, more) in pairs}


def _trials(group: Group, rounds: int, truth: Sequence[float], random: np.random.Generator) -> list[Trial]:
    """Return simulated trials of dense (true time 1) and each sparse candidate, noise from consecutive recorded rounds.

    The rounds begin at a random one. Halves, which are processes, are swapped at random per set of processes. `truth`
    has the natural log of dense / sparse of each sparse candidate.
    """
    start = int(random.integers(len(group.logs) - rounds + 1))
    first, swapped = int(random.integers(len(SLOTS))), random.integers(2, size=len(group.logs))
    found = []
    for number in range(rounds):
        places: list[tuple[int | str, int, int, float]] = [(BASELINE, DENSE, 0, 0.0)]
        for place, faster in enumerate(truth):
            candidate, half = SLOTS[(first + place) % len(SLOTS)]
            own = OWN * random.standard_normal() if place >= len(SLOTS) else 0.0
            places.append((place, candidate, half, own - faster))
        for name, candidate, half, more in places:
            own_set = int(group.sets[start + number])
            at = start + number, candidate, half ^ int(swapped[own_set])
            seconds = math.exp(group.logs[at] + more)
            state = bool(group.disturbed[at]), own_set, float(group.severity[at])
            found.append(Trial(name, seconds, "simulated", number, *state))
    return found


ANSWERS = 1_000
"""Simulated comparisons of each kind."""
TRUTHS = (1.0, 1.2, 2.0, 4.0, 30.0, 300.0)
CANDIDATES = (1, 2, 4, 8)
ROUNDS = (1, 2, 4, 8, MOST)
FEW_AND_MANY = (2, 8)
"""Rounds of the comparisons at one true ratio."""
COVERED, COVERED_EACH, BOUNDED = (0.93, 0.97), (0.90, None), (0.95, None)
BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0)
NEAR = 0.03
"""How far the share of right statements may be from the mean probability that was stated."""
SURE = 0.99
ROUND_SD = 0.2
DEVIATIONS = (0.05, 0.2, 0.5)
"""Standard deviations of the log ratio of csr and dense that the undisturbed noise is scaled to."""
APART = 0.3
"""Standard deviation of the logarithms of other sparse candidates' times around the first."""


def truths(count: int, candidates: int, random: np.random.Generator, ratio: float | None = None) -> np.ndarray:
    """Return the natural logs of true ratios dense / sparse, [count, candidates].

    Those of the first candidate are a mixture of usual and large ones, or all of the given `ratio`; the others are
    slower.
    """
    usual, large = random.normal(0, 1.2, count), random.normal(3, 1, count)
    first = np.where(random.random(count) < 0.7, usual, large) if ratio is None else np.full(count, math.log(ratio))
    others = first[:, None] - np.abs(random.normal(0, APART, (count, candidates - 1)))
    return np.hstack([first[:, None], others])


def conditions(noise: Noise) -> list[str]:
    """Return the loads that were recorded, quiet first."""
    return [load for load in (QUIET, *LOADS) if load in noise.groups]


def coverage(noise: Noise, count: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield outcome records: how often 95 % intervals contain the true ratio, over all true ratios, then for each.

    `count` is the number of simulated comparisons of each kind.
    """
    what, count = "the 95 % interval holds the true ratio", count or ANSWERS
    quiet = noise.undisturbed()  # what a load does to a ratio is not in proportion to the noise without one
    for deviation in DEVIATIONS:
        scaled, random = quiet.scaled(deviation / quiet.pair_sd(CSR, DENSE)), np.random.default_rng(4)
        sampled = truths(count // 4, 2, random).tolist()
        found = [answer for rounds in FEW_AND_MANY for answer in answers(scaled, QUIET, rounds, sampled, random)]
        held = [one.holds for one in found]
        yield _share("coverage", f"{what}, all ratios", f"quiet, sd of a ratio {deviation:g}", held, COVERED)
    for load in conditions(noise):
        random, every = np.random.default_rng(1), list[Answer]()
        for candidates in CANDIDATES:
            for rounds in ROUNDS:
                sampled = truths(count // 10, candidates, random).tolist()
                every += answers(noise, load, rounds, sampled, random)
        yield _share("coverage", f"{what}, all ratios", load, [one.holds for one in every], COVERED)
        bounds = [one.bounds for one in every]
        yield _share("coverage", "the ratio is at least the bound stated, all ratios", load, bounds, BOUNDED)
        for ratio in TRUTHS:
            sampled = truths(count // 4, 1, random, ratio).tolist()
            found = [answer for rounds in FEW_AND_MANY for answer in answers(noise, load, rounds, sampled, random)]
            yield _share(
                "coverage",
                f"{what}, {ratio:g} x",
                load,
                [one.holds for one in found],
                COVERED_EACH,
                **_one_columns(ratio, float(np.mean(FEW_AND_MANY))),
            )


def calibration(noise: Noise, count: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield outcome records: per bin of stated probability the share of right statements, against the mean stated.

    `count` is the number of simulated comparisons of each kind.
    """
    random, count = np.random.default_rng(2), count or ANSWERS
    by_load = {
        load: [
            answer
            for candidates in CANDIDATES
            for rounds in ROUNDS
            for answer in answers(noise, load, rounds, truths(count // 5, candidates, random).tolist(), random)
        ]
        for load in conditions(noise)
    }
    every = [one for found in by_load.values() for one in found]
    for low, high in pairwise(BINS):
        of_bin = [one for one in every if low <= one.stated < high or (high == 1.0 == one.stated)]
        stated = float(np.mean([one.stated for one in of_bin])) if of_bin else math.nan
        limits = (0.99, None) if low == SURE else (stated - NEAR, min(stated + NEAR, 1.0))
        what = f"statements of {100 * low:g} to {100 * high:g} % are right"
        yield _share("calibration", what, "all", [one.is_right for one in of_bin], limits if of_bin else (None, None))
    clear = [one.stated > SURE for one in by_load[QUIET] if one.truth >= math.log(2)]
    yield _share("calibration", "a true ratio of 2 or more is said at over 99 %", QUIET, clear, (0.6, None))


def power(noise: Noise, count: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield outcome records: how often 1.2 x is stated at 90 % with usual noise, and equals are called different."""
    random, count = np.random.default_rng(3), count or ANSWERS
    quiet = noise.undisturbed()
    usual = quiet.scaled(ROUND_SD / quiet.pair_sd(CSR, DENSE))
    found = answers(usual, QUIET, MOST, truths(count, 1, random, 1.2).tolist(), random)
    said = [one.stated >= 0.9 and one.is_right for one in found]
    condition = f"12 rounds, sd of a ratio {ROUND_SD:g}"
    yield _share("power", "1.2 x is said at 90 % or more", condition, said, (0.75, None), **_one_columns(1.2, MOST))
    for load in conditions(noise):
        found = answers(noise, load, MOST, truths(count, 1, random, 1.0).tolist(), random)
        is_certain = [one.stated > SURE for one in found]
        yield _share(
            "power", "equals are told apart at 99 %", load, is_certain, (None, 0.02), **_one_columns(1.0, MOST)
        )


def _share(
    part: str, what: str, condition: str, hits: Sequence[bool], wanted: tuple[float | None, float | None], **known: Any
) -> dict[str, Any]:
    """Return the outcome record of the share of true `hits`; `wanted` is (least, most) of it, None for no bound.

    `part`, `what` and `condition` name the outcome; `known` are further columns.
    """
    return share_row(part, what, condition, sum(hits), len(hits), wanted, **known)


def _one_columns(ratio: float, rounds: float) -> dict[str, Any]:
    """Return the record columns of comparisons with one sparse candidate at one true ratio, for the chart."""
    return {"truth": ratio, "candidates": 1, "rounds": float(rounds)}
