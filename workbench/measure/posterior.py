"""Posterior of the times of candidates, from the rounds in which they were measured: ratios, their probability, losses.

The logarithm of the seconds of candidate c in a round is taken as

    m[c] + level[run] + speed[round] + shared[c, run] + process[c, set of processes] + noise

all terms but m normal with mean 0. `m` is what is asked for. `speed` is common to the candidates of a round, so it
leaves their ratios alone; it also lets candidates be compared that share no round, with less certainty. `shared` does
not shrink with the number of rounds: a machine is in one state for as long as a run lasts. `process` is common to the
rounds that one set of living processes measured.

A trial during which other programs ran is disturbed, the more the more of the cores they took. It has more noise, one
slowdown that all disturbed trials of a run share, and one bias for each candidate: a load does not slow all candidates
alike, and more disturbed rounds do not show by how much; quiet rounds of the same run do. So disturbed rounds cannot
decide a ratio of 1.3, and they do decide one of 3.

The variance of the noise is not known: that of a comparison is shrunk towards what is usual (moderated t; Smyth 2004,
Statistical Applications in Genetics and Molecular Biology 3, 3), and intervals are those of Student's t. The noise of
one trial has heavy tails, so that one trial several times too long, which no flag marks, decides nothing: the further a
trial is off, the less it counts (Lange, Little and Taylor 1989, Journal of the American Statistical Association 84,
881). The interval of up to four rounds takes in what they say without any one of them. The prior of m[c] is wide, or
the prediction of a cost model with the error of such predictions. Given the weights of the trials the posterior is a
normal distribution in closed form (Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, 2.2).

The fastest of many candidates is partly the luckiest: the interval of a ratio of two candidates that were chosen as the
fastest of their sides allows for that, by the errors of the best of each side in draws of the joint posterior (Hsu
1984, Annals of Statistics 12, 1136). `python -m benchmarks self` measures how often the intervals hold the truth.

>>> from workbench.measure.posterior import Trial, posterior
>>> trials = [Trial("csr", 1.0, "run", 0), Trial("dense", 20.0, "run", 0)]
>>> ratio = posterior(trials).ratio("dense", "csr")
>>> round(ratio.value), ratio.probability > 0.999, ratio.verdict
(20, True, 'sparse')
"""

import functools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

import numpy as np

EQUIVALENCE_MARGIN = 1.1
"""Two candidates whose ratio surely lies between 1 / LEVEL and LEVEL differ by nothing that matters."""
LIKELY = 0.8
"""Probability from which on a side is called probably faster."""
SURE = 0.975
"""Probability from which on a side is called faster: the 95 % interval then lies on one side of 1."""
DEVIATION = 0.2
"""Standard deviation of a round's log ratio that is usual on a shared machine; quiet ones of one's own have 0.05."""
FREEDOM = 10.0
"""Degrees of freedom that the usual standard deviations, of rounds and of biases, count as."""
MILDEST, SEVEREST = 1.0, 8.0
"""Least and largest severity of what other programs do to a disturbed trial."""
MIN_LOG_SD = 0.01
"""The least standard deviation of a log ratio that is believed."""
DRAWS = 4_000
"""Draws that an expected loss is averaged over: its own error is below a tenth of the loss."""
FEW_ROUNDS = 4
"""Up to so many rounds an interval takes in what they say without any one of them."""
WITHOUT_ONE = 0.7
"""Half the width of an interval without a round, as a share of that with all: 92 % of a side, not 97.5 %."""
REWEIGHTINGS = 12
"""Steps towards the weights of the trials, at most."""
SETTLED = 0.01
"""Weights that change by less are those searched for."""


@dataclass(frozen=True)
class Noise:
    """Standard deviations of the model, of logarithms; those named by a share are relative to that of a round's ratio.

    `shared` and `process` are shares of its variance. `speed` and `slowdown` are common to the candidates of a round;
    `bias` is that of a ratio of rounds of which others took half of the cores, in proportion to a run's severity, and
    `wider` how many times as large their noise is. `unknown` is the
    prior of a candidate without a prediction, `predicted` that of one with: the error of the cost model. `unrest` is
    a bias of all trials of a run that has disturbed ones, in proportion to their share. `tail` has the degrees of
    freedom of the noise of one trial; with `math.inf` it is normal.

    Measured in turns on two cores (`python -m benchmarks self`), by moments from half of the groups:
    process 0.26, shared 0.31 of runs minutes apart, wider 1.5, bias 0.14, unrest 0.02. In use are those of least
    interval score (Gneiting and Raftery 2007, Journal of the American Statistical Association 102, 477, 6.2) in sweeps
    simulated with that half, rounded upwards.
    """

    shared: float = 0.1
    process: float = 0.2
    speed: float = 0.2
    slowdown: float = 1.0
    bias: float = 0.15
    wider: float = 1.5
    unrest: float = 0.03
    unknown: float = 30.0
    predicted: float = 0.7
    tail: float = 2.0


NOISE = Noise()


class Scatter(NamedTuple):
    """Standard deviation of a round's log ratio, and the degrees of freedom with which it is known."""

    deviation: float = DEVIATION
    freedom: float = FREEDOM

    def shrunk(self, squares: float, freedom: float) -> "Scatter":
        """Return the posterior scatter, with this one as the prior, given residuals.

        `squares` is their sum of squares, `freedom` their degrees of freedom.
        """
        total = self.freedom + freedom
        variance = (self.freedom * self.deviation**2 + squares) / total
        return Scatter(max(math.sqrt(variance), MIN_LOG_SD), float(total))


ANYWHERE = Scatter(freedom=2.0)
"""What is usual before anything was measured; what the comparisons of a sweep show together soon outweighs it."""


Candidate = TypeVar("Candidate", bound=Hashable)
"""Type of the names of candidates."""
Name = TypeVar("Name", bound=Hashable)
Place = tuple[Hashable, int]
"""Run and round."""


class Trial(NamedTuple, Generic[Candidate]):
    """One trial: candidate, seconds, and the run, round and set of processes it belongs to.

    Trials with the same `process` were measured by one living process of the candidate; None for a process that
    measured one round. `is_disturbed` if other programs took the cores meanwhile, `severity` how much (`severity_of`).
    """

    candidate: Candidate
    seconds: float
    run: Hashable
    round: int
    is_disturbed: bool = False
    process: Hashable | None = None
    severity: float = 1.0


def severity_of(share: float | None) -> float:
    """Return how strongly other programs disturb a trial that took this share of all cores: 1 for half of them.

    The share that they take divided by the share that is left, `MILDEST` to `SEVEREST`; 1 if it is not known.

    >>> severity_of(0.5), severity_of(0.75), severity_of(1.0), severity_of(None)
    (1.0, 3.0, 8.0, 1.0)
    """
    if share is None:
        return 1.0
    return min(max(share / max(1.0 - share, 1e-9), MILDEST), SEVEREST)


class Ratio(NamedTuple):
    """Ratio of the times of two candidates: best estimate, 95 % interval, and the probability that it is above 1.

    `rounds` of so many `runs` have both candidates, `disturbed` of these were next to other programs.
    """

    value: float
    low: float
    high: float
    rounds: int = 0
    runs: int = 0
    probability: float = math.nan
    disturbed: int = 0

    @property
    def verdict(self) -> str:
        """Verdict on a ratio dense / sparse: "sparse", "dense" (both significant), "level" or "inconclusive"."""
        if self.low > 1:
            return "sparse"
        if self.high < 1:
            return "dense"
        return "level" if self.low >= 1 / EQUIVALENCE_MARGIN and self.high <= EQUIVALENCE_MARGIN else "inconclusive"

    @property
    def minimum_detectable_ratio(self) -> float:
        """Smallest factor that rounds of this number and noise distinguish from 1; inf without an interval."""
        return math.sqrt(self.high / self.low) if self.low > 0 else math.inf


class Posterior(Generic[Candidate]):
    """Joint distribution of the logarithms of the candidates' times: `mean` [c], `covariance` [c, c], by `names`.

    Only differences mean something. `scatter` is that of a round's log ratio.
    """

    def __init__(
        self,
        names: Sequence[Candidate],
        mean: np.ndarray,
        covariance: np.ndarray,
        scatter: Scatter,
        trials: Sequence[Trial[Candidate]],
        without: Callable[[Place], "Posterior[Candidate]"] | None = None,
        draws: Callable[[], np.ndarray] | None = None,
    ) -> None:
        """Store the distribution: `mean` [c] and `covariance` [c, c] of log seconds in the order of `names`.

        `without` returns the posterior without a round, with the same scatter and predictions; `draws` returns draws of
        it, by default new ones.
        """
        self.names, self.mean, self.covariance = tuple(names), mean, covariance
        self.scatter, self.freedom, self.trials = scatter, scatter.freedom, tuple(trials)
        self.without, self._draw = without, draws
        self._place = {name: place for place, name in enumerate(self.names)}
        self._rounds: dict[Candidate, dict[tuple[Hashable, int], bool]] = {name: {} for name in self.names}
        self._runs: dict[Candidate, set[Hashable]] = {name: set() for name in self.names}
        for trial in self.trials:  # by candidate: whether each round was disturbed, and the runs
            self._rounds[trial.candidate][trial.run, trial.round] = trial.is_disturbed
            self._runs[trial.candidate].add(trial.run)

    def ratio(
        self,
        first: Candidate,
        second: Candidate,
        firsts: Iterable[Candidate] = (),
        seconds: Iterable[Candidate] = (),
    ) -> Ratio:
        """Return the ratio of the times first / second, with 95 % interval and probability that it is above 1.

        If the two were chosen as the fastest of `firsts` and of `seconds`, the interval is that of the ratio of the
        best of both: it allows for the luck of the chosen ones. Raises KeyError for a candidate without a trial or a
        prediction. O(trials + DRAWS * candidates), and O(trials^3) once for each of up to `FEW_ROUNDS` rounds.
        """
        from scipy import special  # late: see `measure.clock`

        one, other = self._place[first], self._place[second]
        mean, spread = float(self.mean[one] - self.mean[other]), float(self._spread(one)[other])
        mine, its = self._rounds[first], self._rounds[second]
        rounds = mine.keys() & its.keys()
        without = [mean, *(fewer.mean_difference(first, second) for fewer in self._without_each(rounds))]
        half = float(special.stdtrit(self.freedom, SURE)) * spread
        above, below = (min(sign * mean, min(sign * one for one in without) / WITHOUT_ONE) for sign in (1, -1))
        chances = [float(special.stdtr(self.freedom, side / spread)) if spread > 0 else 0.5 for side in (above, below)]
        halves = [half, half]
        chosen = [self._contenders(first, firsts), self._contenders(second, seconds)]
        if len(chosen[0]) > 1 or len(chosen[1]) > 1:
            errors = self._draws - self.mean
            off = (errors[:, one] - errors[:, chosen[1]].min(1), errors[:, other] - errors[:, chosen[0]].min(1))
            halves = [max(half, float(np.quantile(each, SURE))) for each in off]
            beaten = [float((each < side).mean()) for each, side in zip(off, (above, below), strict=True)]
            chances = [min(pair) for pair in zip(chances, beaten, strict=True)]
        probability = chances[0] if chances[0] > 0.5 else 1 - max(chances[1], 0.5)
        disturbed = len([place for place in rounds if mine[place] or its[place]])
        low = min(mean - halves[0], min(without) - WITHOUT_ONE * halves[0])
        high = max(mean + halves[1], max(without) + WITHOUT_ONE * halves[1])
        value, least, most = map(exp_or_inf, (mean, low, high))
        return Ratio(value, least, most, len(rounds), len({run for run, _ in rounds}), probability, disturbed)

    def mean_difference(self, first: Candidate, second: Candidate) -> float:
        """Return the mean of log(time of first / time of second)."""
        return float(self.mean[self._place[first]] - self.mean[self._place[second]])

    def _spread(self, one: int) -> np.ndarray:
        """Return the standard deviation of the log ratio of candidate number `one` to each, float64 [candidates]."""
        diagonal = np.diag(self.covariance)
        return np.sqrt(np.maximum(diagonal + diagonal[one] - 2 * self.covariance[one], 0.0))

    def among(self, names: Mapping[Candidate, Name]) -> "Posterior[Name]":
        """Return the posterior of some of the candidates, by their values in `names`, which may have unknown ones."""
        able = [name for name in self.names if name in names]
        places = [self._place[name] for name in able]
        trials = [Trial(names[trial.candidate], *trial[1:]) for trial in self.trials if trial.candidate in names]
        whole = self.without
        without = None if whole is None else lambda place: whole(place).among(names)
        covariance = self.covariance[np.ix_(places, places)]
        mean, draws = self.mean[places], lambda: self._draws[:, places]
        return Posterior([names[name] for name in able], mean, covariance, self.scatter, trials, without, draws)

    def _without_each(self, rounds: Iterable[Place]) -> Iterable["Posterior[Candidate]"]:
        """Yield the posterior without each of the rounds, if these are 2 to `FEW_ROUNDS`; else nothing."""
        rounds = list(rounds)
        if self.without is not None and 2 <= len(rounds) <= FEW_ROUNDS:
            yield from map(self.without, rounds)

    def _contenders(self, chosen: Candidate, others: Iterable[Candidate]) -> list[int]:
        """Return the numbers of the candidates that may be as fast as `chosen`: itself, and some of `others`.

        Those are not significantly slower and have a run in common with it.
        """
        from scipy import special  # late: see `measure.clock`

        place = self._place[chosen]
        far = self.mean[place] + float(special.stdtrit(self.freedom, SURE)) * self._spread(place)
        able = (self._place[name] for name in others if name in self._place and self._runs[name] & self._runs[chosen])
        return [place, *(k for k in able if k != place and self.mean[k] <= far[k])]

    @cached_property
    def _draws(self) -> np.ndarray:
        """Draws of the log times of all candidates, float64 [DRAWS, candidates], from a fixed seed; cached."""
        if self._draw is not None:
            return self._draw()
        random = np.random.default_rng(0)
        values, vectors = np.linalg.eigh(self.covariance)  # which may have none in some direction, but for rounding
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        scale = np.tile(np.sqrt(self.freedom / random.chisquare(self.freedom, size=(DRAWS // 2, 1))), (2, 1))
        half = random.standard_normal((DRAWS // 2, len(self.names)))
        return self.mean + scale * (np.vstack([half, -half]) @ root.T)  # antithetic: the mean of the draws is exact

    def losses(self, names: Iterable[Candidate] | None = None) -> dict[Candidate, float]:
        """Return {candidate: expected loss} of choosing it; 0.01 means that it takes 1 % too long on average.

        The mean over the posterior of time / least time - 1, among `names` (by default all). O(DRAWS * candidates).
        """
        able = [name for name in (self.names if names is None else names) if name in self._place]
        if not able:
            return {}
        logs = self._draws[:, [self._place[name] for name in able]]
        excess = np.expm1(np.minimum(logs - logs.min(1, keepdims=True), FARTHEST))
        return dict(zip(able, excess.mean(0).tolist(), strict=True))

    def best(self, names: Iterable[Candidate] | None = None) -> Candidate | None:
        """Return the candidate of least expected loss; None if none has a trial or a prediction.

        Candidates that share no run with the one of most trials are left out, since they cannot be compared.
        """
        able = [name for name in (self.names if names is None else names) if name in self._place]
        if not able:
            return None
        counts = {name: len(self._rounds[name]) for name in able}
        runs = self._runs[max(counts, key=counts.__getitem__)]
        losses = self.losses([name for name in able if not self._runs[name] or self._runs[name] & runs])
        return min(losses, key=losses.__getitem__)


FARTHEST = 3.0
"""The logarithm of a ratio at which a loss is as bad as can be: 20 times too long."""


def posterior(
    trials: Iterable[Trial[Candidate]],
    predictions: Mapping[Candidate, float] | None = None,
    scatter: Scatter | None = None,
    noise: Noise = NOISE,
) -> Posterior[Candidate]:
    """Return the posterior of the candidates' log times, given trials and predictions (seconds, by candidate).

    `scatter` is that of a round's log ratio, by default estimated from the trials and shrunk towards the usual one.
    O(trials^3). ValueError for seconds that are not positive and finite.
    """
    trials, predictions = list(trials), dict(predictions or {})
    candidates, seconds = [trial.candidate for trial in trials], [trial.seconds for trial in trials]
    _check("of a trial", zip(candidates, seconds, strict=True))
    _check("predicted", predictions.items())
    names = list(dict.fromkeys([*candidates, *predictions]))
    scatter = scatter or Scatter().shrunk(*residuals(trials))
    prior_mean, prior = _prior(names, predictions, trials, noise)
    if not trials:
        return Posterior(names, prior_mean, np.diag(prior), scatter, trials)
    place = {name: index for index, name in enumerate(names)}
    of_trial = np.array([place[candidate] for candidate in candidates])
    logs = np.log(seconds) - prior_mean[of_trial]
    design = (of_trial[:, None] == np.arange(len(names))).astype(float)  # [trials, candidates]
    common, own = _covariance(trials, scatter.deviation**2, _moderated_bias(trials, noise))
    own = own / _weights(trials, logs, design, common, own, 1 / prior, noise.tail)
    weighted, covariance = _solve(common + np.diag(own), design, 1 / prior)[1:]
    mean = prior_mean + covariance @ (weighted.T @ logs)

    @functools.cache
    def without(place: Place) -> Posterior[Candidate]:
        """Return the posterior of the trials of all rounds but one."""
        rest = [trial for trial in trials if (trial.run, trial.round) != place]
        return posterior(rest, predictions, scatter, noise)

    return Posterior(names, mean, (covariance + covariance.T) / 2, scatter, trials, without)


def _solve(
    covariance: np.ndarray, design: np.ndarray, precision: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (inverse covariance of the trials, its product with `design`, covariance of the candidates).

    `covariance` is that of the trials [trials, trials], `precision` of the candidates' prior [candidates].
    """
    inverse = np.linalg.inv(covariance)
    weighted = inverse @ design
    # By precisions: from the wide prior less what the trials tell, nothing would be left of the variance of quiet ones.
    return inverse, weighted, np.linalg.inv(np.diag(precision) + design.T @ weighted)


def _weights(
    trials: Sequence[Trial],
    logs: np.ndarray,
    design: np.ndarray,
    common: np.ndarray,
    own: np.ndarray,
    precision: np.ndarray,
    tail: float,
) -> np.ndarray:
    """Return the weight of each trial, 1.0 or less, if its noise has Student's t with `tail` degrees of freedom.

    By expectation and maximization. `own` is the variance of the noise of each trial, `common` the covariance of all
    else. What slows a whole round makes none of its trials unusual.
    """
    weights = np.ones(len(trials))
    if math.isinf(tail):
        return weights
    common = common + LARGE**2 * _same([(trial.run, trial.round) for trial in trials])
    for _ in range(REWEIGHTINGS):
        variance = own / weights
        inverse, weighted, covariance = _solve(common + np.diag(variance), design, precision)
        noise = variance * (inverse @ logs - weighted @ (covariance @ (weighted.T @ logs)))
        left = np.diag(inverse) - np.einsum("tc,cd,td->t", weighted, covariance, weighted)
        squares = noise**2 + variance - variance**2 * left
        before, weights = weights, np.minimum((tail + 1) / (tail + squares / own), 1.0)
        if np.abs(weights - before).max() < SETTLED:
            break
    return weights


def _check(what: str, seconds: Iterable[tuple[Hashable, float]]) -> None:
    """Raise ValueError for the first (candidate, seconds) whose seconds are not positive and finite.

    `what` describes the seconds in the message.
    """
    for candidate, value in seconds:
        if not 0 < value < math.inf:
            raise ValueError(f"The seconds {what} of {candidate!r} are {value}; expected a positive, finite number.")


def _prior(
    names: Sequence[Candidate], predictions: Mapping[Candidate, float], trials: Sequence[Trial], noise: Noise
) -> tuple[np.ndarray, np.ndarray]:
    """Return (mean, variance) of the log time of each candidate before its trials, float64 in the order of `names`.

    The mean is the log of the prediction; without one, the mean over all predictions, or over the trials if there are
    none.
    """
    logs = {name: math.log(seconds) for name, seconds in predictions.items()}
    middle = float(np.mean(list(logs.values()) or [math.log(trial.seconds) for trial in trials] or [0.0]))
    mean = np.array([logs.get(name, middle) for name in names])
    return mean, np.array([(noise.predicted if name in logs else noise.unknown) ** 2 / 2 for name in names])


def _covariance(trials: Sequence[Trial], variance: float, noise: Noise) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariance of the trials' log seconds around m but for the noise of each, and the variance of that.

    float64 [trials, trials] and [trials]. `variance` is that of a round's log ratio; a ratio has two trials, so its
    parts are halved.
    """
    same_candidate = _same([trial.candidate for trial in trials])
    same_run = _same([trial.run for trial in trials])
    same_round = _same([(trial.run, trial.round) for trial in trials])
    alone = [trial.process if trial.process is not None else (index,) for index, trial in enumerate(trials)]
    same_process = _same([(trial.run, trial.candidate, own) for trial, own in zip(trials, alone, strict=True)])
    disturbed = np.array([trial.is_disturbed for trial in trials])
    of_run = _severities(trials)
    severity = np.array([of_run[trial.run] if trial.is_disturbed else 0.0 for trial in trials])
    own = variance / 2 * (1 - noise.process) * np.array([_widening(trial, noise) ** 2 for trial in trials])
    found = variance / 2 * (noise.process * same_process + noise.shared * (same_candidate & same_run))
    found = found + noise.speed**2 * same_round + LARGE**2 * same_run
    share = (same_run @ disturbed.astype(float)) / same_run.sum(1)
    found = found + noise.unrest**2 / 2 * np.outer(share, share) * (same_candidate & same_run)
    found = found + noise.slowdown**2 * np.outer(disturbed, disturbed) * same_run
    return found + noise.bias**2 / 2 * np.outer(severity, severity) * same_candidate, own


def _severities(trials: Sequence[Trial]) -> dict[Hashable, float]:
    """Return {run: mean severity of its disturbed trials} for runs that have some.

    The bias of a run is in proportion to this, not to each trial's severity: few trials of unlike severity would
    determine the ratio without a load, at which none was measured.
    """
    found: dict[Hashable, list[float]] = {}
    for trial in trials:
        if trial.is_disturbed:
            found.setdefault(trial.run, []).append(trial.severity)
    return {run: float(np.mean(own)) for run, own in found.items()}


def _widening(trial: Trial, noise: Noise) -> float:
    """Return the standard deviation of a trial's noise relative to an undisturbed one; 1.0 if undisturbed."""
    return math.sqrt(1 + (noise.wider**2 - 1) * trial.severity**2) if trial.is_disturbed else 1.0


def _moderated_bias(trials: Sequence[Trial], noise: Noise) -> Noise:
    """Return the noise with its bias shrunk towards what quiet and disturbed trials of the same runs show.

    If a load shifts a ratio by far more than usual, its disturbed rounds then hardly count. O(trials).
    """
    parts: dict[Hashable, dict[Hashable, tuple[list[Trial], list[Trial]]]] = {}
    for trial in trials:
        parts.setdefault(trial.run, {}).setdefault(trial.candidate, ([], []))[trial.is_disturbed].append(trial)
    squares, freedom, severities = FREEDOM * noise.bias**2, FREEDOM, _severities(trials)
    for run, of_run in parts.items():
        shifts = np.array([_shift(quiet, disturbed) for quiet, disturbed in of_run.values() if quiet and disturbed])
        if len(shifts) > 1:
            shifts = (shifts - shifts.mean()) / severities[run]
            squares += 2 * float((shifts**2).sum())  # a ratio has two of these variances
            freedom += len(shifts) - 1
    return replace(noise, bias=math.sqrt(squares / freedom))


def _shift(quiet: Sequence[Trial], disturbed: Sequence[Trial]) -> float:
    """Return the mean log seconds of disturbed trials less that of quiet ones."""
    means = [float(np.mean([math.log(trial.seconds) for trial in own])) for own in (disturbed, quiet)]
    return means[0] - means[1]


LARGE = 10.0
"""Standard deviation of what is not known beforehand: the logarithm of the speed of a machine in a run."""


def _same(labels: Sequence[Hashable]) -> np.ndarray:
    """Return whether each two labels are equal, bool [labels, labels]."""
    codes = _codes(labels)
    return codes[:, None] == codes


def _codes(labels: Sequence[Hashable]) -> np.ndarray:
    """Return labels as integer codes in the order of first occurrence, int64 [labels]."""
    known = {label: code for code, label in enumerate(dict.fromkeys(labels))}
    return np.array([known[label] for label in labels])


def residuals(trials: Iterable[Trial], noise: Noise = NOISE) -> tuple[float, float]:
    """Return (sum of squares of a log ratio's noise, its degrees of freedom). O(trials * candidates).

    Within the quiet and the disturbed trials of each run, log seconds less the effects of the candidate and of the
    round, by least squares, each trial weighted by its noise.
    """
    squares = freedom = 0.0
    parts: dict[tuple[Hashable, bool], list[Trial]] = {}
    for trial in trials:
        parts.setdefault((trial.run, trial.is_disturbed), []).append(trial)
    for own in parts.values():
        codes = _codes([trial.candidate for trial in own]), _codes([trial.round for trial in own])
        effects = np.hstack([np.eye(code.max() + 1)[code] for code in codes])
        weights = np.array([1 / _widening(trial, noise) for trial in own])
        effects, logs = effects * weights[:, None], weights * np.log([trial.seconds for trial in own])
        solution, _, rank, _ = np.linalg.lstsq(effects, logs)
        squares += 2 * float(((logs - effects @ solution) ** 2).sum())
        freedom += len(own) - int(rank)
    return squares, freedom


def usual_scatter(found: Iterable[tuple[float, float]]) -> Scatter:
    """Return the pooled scatter between rounds, the prior of a new comparison.

    `found` has (sum of squares, degrees of freedom) of each comparison. It counts as `FREEDOM` degrees of freedom for
    one of them, however many there are: comparisons differ.
    """
    squares, freedom = (sum(column) for column in zip((0.0, 0.0), *found, strict=True))
    return ANYWHERE.shrunk(squares, freedom)._replace(freedom=FREEDOM)


def exp_or_inf(logarithm: float) -> float:
    """Return exp(logarithm), inf instead of an overflow."""
    return math.exp(logarithm) if logarithm < 700 else math.inf
