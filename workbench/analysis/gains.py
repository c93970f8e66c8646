"""Gain of sparse over dense at any density, and up to which density it is at least so much.

Between two measured densities the ratio and its interval are read as for break-evens; of densities beyond those
measured nothing is said. To gain at least a factor is to win against a dense
that takes that factor less: so the density up to which it holds is the break-even of the ratios divided by it, with the
interval that a break-even has, and a factor of 1 gives the break-even itself.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from workbench.analysis import configurations, formatting
from workbench.analysis.breakeven import locate_crossing, ratio_between_densities, records_and_contests
from workbench.analysis.compare import Contest, worse_of_group
from workbench.measure.posterior import Ratio

ALIKE = 0.02
"""Densities nearer to each other than this share are the same: data drawn at a density have it only about."""
SIGNS = {"sparse": "✓", "dense": "✗", "level": "=", "inconclusive": "?"}
MEASURED = "measured"
WORSE = "† trained a worse model"


class Gain(NamedTuple):
    """Gain of one configuration at one density: `ratio` is dense / sparse, None if it is not known.

    `source` says how it is known: measured, read from two densities around it, or why not. `verdict` is sparse, dense,
    level or inconclusive.
    """

    ratio: Ratio | None
    verdict: str
    source: str

    @property
    def text(self) -> str:
        """The gain as text with a sign, such as "✓ sparse 3 times better" or "? not measured below 1 %"."""
        if self.ratio is None:
            return f"{SIGNS[self.verdict]} {self.source}"
        if self.verdict in ("sparse", "dense"):
            return f"{SIGNS[self.verdict]} {self.verdict} {formatting.format_gain(self.ratio)} better"
        return f"{SIGNS[self.verdict]} {self.verdict}: {formatting.format_times(self.ratio)}"


class Reach(NamedTuple):
    """Highest density at which a configuration gains at least a factor: a key of `breakeven.STATUSES` and the ends."""

    status: str
    density: float | None
    low: float | None
    high: float | None
    sentence: str


class Line(NamedTuple):
    """One sparse configuration in one group and measure: its rows, its contests with dense, and a doubt or ''."""

    group: configurations.Group
    measure: str
    rows: Sequence[configurations.Record]
    contests: Sequence[Contest]
    warning: str

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the group and of the configuration in one dict, with the names of record columns."""
        return self.group.settings | configurations.line_of(self.rows[0])

    @property
    def compared(self) -> list[Contest]:
        """The contests that have a ratio and a density, ascending in density."""
        return [contest for contest in self.contests if contest.ratio is not None and contest.density]


def lines_of_group(group: configurations.Group, measure: str) -> Iterator[Line]:
    """Yield a `Line` per sparse configuration of a group in `measure`. O(configurations * densities * rounds)."""
    worse = worse_of_group(group)
    for rows, contests in records_and_contests(group, measure):
        yield Line(group, measure, rows, contests, _quality_warning(rows, [row for row in rows if id(row) in worse]))


def _quality_warning(rows: Sequence[configurations.Record], worse: Sequence[configurations.Record]) -> str:
    """Return the warning that `worse`, some of `rows`, trained a worse model, with densities; "" if none did."""
    if not worse:
        return ""
    if len(worse) == len(rows):
        return f"{WORSE} everywhere, so no win"
    densities = (formatting.format_density(configurations.density_of(row) or 0.0) for row in worse)
    return f"{WORSE} at {formatting.join_items(densities)}, so no win there"


def gain_at_density(line: Line, density: float) -> Gain:
    """Return the gain of a configuration at `density` (a fraction): measured (within 2 %), or interpolated.

    Outside of the measured densities it has no ratio, and `source` says why.
    """
    here = next((contest for contest in line.contests if _is_at(contest, density)), None)
    if here is not None:
        return Gain(here.ratio, here.verdict, MEASURED if here.ratio else _without_ratio(here))
    compared = line.compared
    after = next((place for place, one in enumerate(compared) if (one.density or 0.0) > density), len(compared))
    if after in (0, len(compared)):
        return Gain(None, "inconclusive", _reach_beyond_measured(compared, after))
    low, high = compared[after - 1 : after + 1]
    ratio = ratio_between_densities(low, high, density, line.measure)
    return Gain(
        ratio,
        ratio.verdict,
        f"read from {formatting.format_span(low.density or 0.0, high.density or 0.0, formatting.format_density)}",
    )


def highest_density_with_gain(line: Line, factor: float) -> Reach:
    """Return up to which density a configuration is at least `factor` times as fast as dense."""
    asked = [_with_better_dense(one, factor) for one in line.compared]
    if len(asked) < 2:
        return Reach("too_few", None, None, None, _at_one(asked))
    status, ends = locate_crossing(asked, line.measure)
    middle, low, high = ends
    return Reach(status, middle, low, high, _describe_reach(status, ends, asked))


def _is_at(contest: Contest, density: float) -> bool:
    """Return whether the measured or requested density of a contest is within 2 % of `density`."""
    rows = [row for row in (contest.sparse, contest.dense) if row is not None]
    known = (contest.density, *(row["density"] for row in rows))
    return any(each and abs(each / density - 1) < ALIKE for each in known)


def _without_ratio(contest: Contest) -> str:
    """Return why a contest has no ratio: which side did not fit in memory, or its reason."""
    unfit = {"sparse": "dense did not fit in memory", "dense": "sparse did not fit in memory"}
    return unfit.get(contest.verdict, contest.why)


def _reach_beyond_measured(compared: Sequence[Contest], after: int) -> str:
    """Return "not measured below 1 %" if `after` is 0, else "... above"; "not compared with dense" without contests."""
    if not compared:
        return "not compared with dense"
    end = compared[0] if after == 0 else compared[-1]
    return f"not measured {'below' if after == 0 else 'above'} {formatting.format_density(end.density or 0.0)}"


def _with_better_dense(contest: Contest, factor: float) -> Contest:
    """Return the contest with its ratio divided by `factor`, as if dense were that much faster; no ratio: unchanged."""
    if contest.ratio is None or factor == 1:
        return contest
    value, low, high = (end / factor for end in contest.ratio[:3])
    ratio = contest.ratio._replace(value=value, low=low, high=high)
    return contest._replace(ratio=ratio, verdict=ratio.verdict)


def _at_one(asked: Sequence[Contest]) -> str:
    """Return whether the gain is reached at the only density compared, such as "yes, at 1 %, the one density"."""
    if not asked:
        return "not compared with dense"
    words = {"sparse": "yes", "dense": "no", "level": "about that", "inconclusive": "inconclusive"}
    return f"{words[asked[0].verdict]}, at {formatting.format_density(asked[0].density or 0.0)}, the one density"


def _describe_reach(status: str, ends: tuple, asked: Sequence[Contest]) -> str:
    """Return up to which density the gain is reached, from `locate_crossing`'s status and (density, lower, upper).

    `asked` are the contests in ascending density, with dense taken as faster by the wanted factor.
    """
    middle, low, high = ends
    first, last = (formatting.format_density(one.density or 0.0) for one in (asked[0], asked[-1]))
    if status == "crossing":
        return f"up to {formatting.format_breakeven(middle, low, high).removeprefix('at ').removesuffix(' density')}"
    if status == "several":
        return f"changes more than once between {formatting.format_span(low, high, formatting.format_density)}"
    if status == "sparse":
        return (
            f"up to {formatting.format_density(low)} at "
            f"least{', as far as was measured' if formatting.format_density(low) == last else ''}"
        )
    if status == "dense":
        return (
            "at no density measured"
            if formatting.format_density(high) == first
            else f"not from {formatting.format_density(high)} on"
        )
    return "about that at every density" if status == "level" else "inconclusive"
