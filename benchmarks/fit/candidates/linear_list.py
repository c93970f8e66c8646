"""Libraries of the one list of linear competitors that no other file here has: each point is a fit anew."""

from functools import partial

from benchmarks import linear
from benchmarks.fit.candidates import STRENGTHS, Candidate, Rows, Scorer, Value, register

BYTES_NUMBER = 8


def refit(name: str, rows: Rows, value: Value, iterations: int) -> tuple[Scorer, bool]:
    """Fit a new logistic regression; return (scorer, whether it ended by itself). `value` has C."""
    problem = linear.Problem(rows.x, rows.y.reshape(-1), rows.has_intercept, rows.threads, rows.seed)
    trained = linear.solve(name, problem, value["C"], iterations)
    return trained.scores, trained.is_done


def why_not(name: str, rows: Rows) -> str:
    """Return why these rows have too few for each weight, "" if they have enough."""
    return linear.get(name).why_not(*rows.x.shape)


def bytes_needed(name: str, rows: Rows) -> int:
    """Return the bytes of a matrix of all pairs of weights, 0 for what makes none."""
    return rows.x.shape[1] ** 2 * BYTES_NUMBER if linear.get(name).is_quadratic else 0


for _one in map(linear.get, linear.OTHERS):
    register(
        Candidate(
            _one.name,
            "competitor",
            ("logistic",),
            lambda model: STRENGTHS,
            refit=partial(refit, _one.name),
            needs=_one.module,
            install=_one.install,
            bytes_needed=partial(bytes_needed, _one.name),
            why_not=partial(why_not, _one.name),
        )
    )
