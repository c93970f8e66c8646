"""Paths over alpha with an L1 penalty compared with celer, skglm, liblinear and scikit-learn: `benchmarks path`.

Twenty alphas, from the largest to a hundredth of it, without an intercept: what every side can do. Each side, ours too,
gets the loosest tolerance of its ladder with which its objective, computed here in float64, is within 1e-4 of the loss
of zero weights of the minimum, for every alpha; the minimum is ours at a gap of 1e-7. "certified" is ours at its
default, a measured duality gap of 1e-4, which bounds that distance and is far more than it. A side is a process that
keeps its data and compiled code; they run in turns. The machine should be idle: its load is in the records.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np
import scipy.sparse

ALPHAS, WEAKEST = 20, 1e-2
ALLOWED, GAP, EXACT = 1e-4, 1e-4, 1e-7
"""Distance of the objective to the minimum, and duality gaps of ours: as timed, and as the minimum."""
LIMIT = 25.0
"""Seconds of a run above which a side is not run again in further rounds, nor with a tighter tolerance twice."""
SETS = ("text", "clicks", "dense", "tall")
LOSSES = ("logistic", "squared")
RECORDS, PAGE = "bench-path.jsonl", "bench-path.md"
WORDS = {
    "text": "text, 20,000 x 50,000, Zipf columns",
    "clicks": "clicks, 100,000 x 54,000, one-hot",
    "dense": "dense, 5,000 x 500",
    "tall": "dense, 100,000 x 50",
}
OURS = ("workbench", "certified")
SIDES = {
    "workbench": ("sparse-workbench", ("logistic", "squared"), (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4)),
    "celer": ("celer", ("logistic", "squared"), (1e-4, 1e-5, 1e-6)),
    "skglm": ("skglm", ("logistic", "squared"), (1e-2, 1e-3, 1e-4, 1e-5)),
    "liblinear": ("liblinear-official", ("logistic",), (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)),
    "lasso_path": ("scikit-learn", ("squared",), (1e-3, 1e-4, 1e-5, 1e-6)),
    "saga": ("scikit-learn", ("logistic",), (1e-3, 1e-4, 1e-5)),
}
"""Distribution, losses, and tolerances from loose to tight, of each side; ours is the duality gap, skglm's are
multiples of the largest alpha, as it compares them with the gradient."""
ONLY = {"saga": ("dense", "tall")}
"""Sets of a side that takes minutes on the others."""


def draw_set(name: str, scale: float = 1.0) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return (X float64 [T, D], csc or in Fortran order; targets 0 and 1; centred numbers) of a synthetic set.

    `scale` multiplies the rows.
    """
    if name == "text":
        return _text(int(20_000 * scale), int(50_000 * scale), 80)
    if name == "clicks":
        return _clicks(int(100_000 * scale), 20)
    rows, columns = (5_000, 500) if name == "dense" else (100_000, 50)
    return _dense(int(rows * scale), columns)


def _labels(scores: np.ndarray, noise: float, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return classes 0 and 1 drawn by scores [T], and scores with noise, centred."""
    classes = (random.random(len(scores)) < 1 / (1 + np.exp(-scores))).astype(np.float64)
    numbers = scores + random.normal(size=len(scores)) * noise
    return classes, numbers - numbers.mean()


def _narrow(x: Any) -> Any:
    """Return csc X with int32 indices, which all sides take."""
    x = x.tocsc()
    x.sort_indices()
    return scipy.sparse.csc_array((x.data, x.indices.astype(np.int32), x.indptr.astype(np.int32)), shape=x.shape)


def _text(rows: int, columns: int, words: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return rows of words drawn by Zipf's law, weighted by tf-idf, of norm 1."""
    random = np.random.default_rng(0)
    shares = 1 / (np.arange(columns) + 10.0)
    drawn = np.searchsorted(np.cumsum(shares / shares.sum()), random.random(rows * words))
    place = np.repeat(np.arange(rows), words), np.minimum(drawn, columns - 1)
    x = scipy.sparse.csr_array((np.ones(rows * words), place), shape=(rows, columns))
    x.sum_duplicates()
    counts = np.bincount(x.indices, minlength=columns)
    x.data = (1 + np.log(x.data)) * np.log(rows / (1 + counts))[x.indices].clip(0.1)
    of_row = np.repeat(np.arange(rows), np.diff(x.indptr))
    x.data /= np.sqrt(np.bincount(of_row, x.data**2, rows))[of_row]
    weights = np.zeros(columns)
    weights[random.choice(min(2000, columns), min(300, columns), replace=False)] = (
        random.normal(size=min(300, columns)) * 6
    )
    scores = x @ weights
    scores -= np.median(scores)
    return _narrow(x), *_labels(scores, float(scores.std()) / 2, random)


def _clicks(rows: int, fields: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return one-hot rows of some fields of 3 to 20,000 values, drawn by a power law."""
    random, columns, first = np.random.default_rng(1), [], 0
    for size in np.geomspace(3, 20_000, fields).astype(int):
        shares = 1 / (np.arange(size) + 1.0) ** 1.1
        drawn = np.searchsorted(np.cumsum(shares / shares.sum()), random.random(rows))
        columns.append(first + np.minimum(drawn, size - 1))
        first += int(size)
    indices = np.stack(columns, 1).ravel()
    x = scipy.sparse.csr_array((np.ones(rows * fields), indices, np.arange(rows + 1) * fields), shape=(rows, first))
    weights = random.normal(size=first) / 2 * (random.random(first) < 0.1)
    scores = x @ weights
    return _narrow(x), *_labels(scores - np.quantile(scores, 0.8), 1.0, random)


def _dense(rows: int, columns: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return normal columns, each correlated with the one before by a half, a tenth of which count."""
    random = np.random.default_rng(2)
    x = random.normal(size=(rows, columns))
    for j in range(1, columns):
        x[:, j] = (x[:, j - 1] + np.sqrt(3) * x[:, j]) / 2
    weights = np.zeros(columns)
    weights[random.choice(columns, columns // 10, replace=False)] = random.normal(size=columns // 10)
    scores = x @ weights
    return np.asfortranarray(x), *_labels(scores, float(scores.std()) / 2, random)


def largest_alpha(x: Any, y: np.ndarray, loss: str) -> float:
    """Return the alpha from which on all weights are 0."""
    return float(np.abs(x.T @ (y - 0.5 if loss == "logistic" else y)).max()) / len(y)


def objective(x: Any, y: np.ndarray, loss: str, weights: np.ndarray, alpha: float) -> float:
    """Return the mean loss plus alpha times the L1 norm."""
    scores = x @ weights
    losses = np.logaddexp(0, scores) - y * scores if loss == "logistic" else (scores - y) ** 2 / 2
    return float(losses.mean() + alpha * np.abs(weights).sum())


Fit = Callable[[float], list[np.ndarray]]
"""Returns the weights [D] for each alpha, by the tolerance."""


def fit_of(side: str, x: Any, y: np.ndarray, loss: str, alphas: np.ndarray) -> Fit:
    """Return the path of a side as a function of the tolerance; what it returns is done in each timed run."""
    if side == "workbench":
        from workbench.training.l1 import L1Descent

        def ours(tolerance: float) -> list[np.ndarray]:
            """Train ours."""
            descent, found = L1Descent(x, y, None, loss, has_intercept=False, is_path=True), []
            for alpha in alphas:
                if descent.minimize(float(alpha), 1.0, tolerance) > tolerance:
                    raise RuntimeError("A gap was missed.")
                found.append(descent.weights.copy())
            return found

        return ours
    if side == "celer":
        from celer.homotopy import celer_path

        signs, scale, kind = (2 * y - 1, len(y), "logreg") if loss == "logistic" else (y, 1, "lasso")
        options = {"max_iter": 200, "prune": 1, "use_PN": loss == "logistic"}
        return lambda tol: list(celer_path(x, signs, kind, alphas=alphas * scale, tol=tol, **options)[1].T)
    if side == "skglm":
        from skglm.estimators import Lasso, SparseLogisticRegression

        made = (SparseLogisticRegression if loss == "logistic" else Lasso)(fit_intercept=False, warm_start=True)

        def fit_skglm(tolerance: float) -> list[np.ndarray]:
            """Train skglm from zero weights, each alpha from the weights before."""
            found = []
            made.__dict__.pop("coef_", None)
            for alpha in alphas:
                made.set_params(alpha=alpha, tol=tolerance * alphas[0], max_iter=100)
                found.append(made.fit(x, y).coef_.ravel().copy())
            return found

        return fit_skglm
    if side == "liblinear":
        from liblinear import liblinearutil

        rows = x.tocsr() if scipy.sparse.issparse(x) else scipy.sparse.csr_array(x)
        rows = scipy.sparse.csr_matrix((rows.data, rows.indices, rows.indptr), shape=rows.shape)

        def fit_liblinear(tolerance: float) -> list[np.ndarray]:
            """Train liblinear for each alpha; the conversion of the rows is part of it, once."""
            problem, found = liblinearutil.problem(2 * y - 1, rows), []
            for alpha in alphas:
                text = f"-s 6 -c {1 / (alpha * len(y)):.12g} -e {tolerance} -B -1 -q"
                model = liblinearutil.train(problem, text)
                weights = np.array(model.w[: model.nr_feature]) * (1 if model.label[0] == 1 else -1)
                found.append(np.pad(weights, (0, x.shape[1] - len(weights))))
            return found

        return fit_liblinear
    if side == "lasso_path":
        from sklearn.linear_model import lasso_path

        return lambda tol: list(lasso_path(x, y, alphas=alphas, tol=tol, max_iter=100_000)[1].T)
    from sklearn.linear_model import LogisticRegression

    saga = LogisticRegression(l1_ratio=1.0, solver="saga", fit_intercept=False, warm_start=True, max_iter=2000)
    rows = np.ascontiguousarray(x) if isinstance(x, np.ndarray) else x.tocsr()

    def fit_saga(tolerance: float) -> list[np.ndarray]:
        """Train saga, each alpha from the weights before."""
        found = []
        saga.__dict__.pop("coef_", None)
        for alpha in alphas:
            found.append(saga.set_params(C=1 / (alpha * len(y)), tol=tolerance).fit(rows, y).coef_.ravel().copy())
        return found

    return fit_saga


def serve(side: str, name: str, loss: str, scale: float) -> None:
    """Answer lines of JSON, {"prepare": objectives at the minimum} or {"run": tolerance}, until the input ends."""
    warnings.simplefilter("ignore")
    x, classes, numbers = draw_set(name, scale)
    y = classes if loss == "logistic" else numbers
    alphas = largest_alpha(x, y, loss) * np.geomspace(1, WEAKEST, ALPHAS)
    start, fit = objective(x, y, loss, np.zeros(x.shape[1]), 0.0), fit_of(side, x, y, loss, alphas)

    def run(tolerance: float) -> tuple[float, list[float], int]:
        """Return (seconds, objectives, weights that are not zero at the last alpha) of a run."""
        begin = time.perf_counter()
        found = fit(tolerance)
        seconds = time.perf_counter() - begin
        values = [objective(x, y, loss, weights, float(alpha)) for weights, alpha in zip(found, alphas, strict=True)]
        return seconds, values, int(np.count_nonzero(found[-1]))

    for line in sys.stdin:
        asked = json.loads(line)
        if "run" in asked:
            seconds, values, count = run(asked["run"])
            answer: dict[str, Any] = {"seconds": seconds, "values": values, "nonzeros": count}
        else:
            answer = {"excess": None, "tried": []}
            run(SIDES[side][2][0])  # compiles
            for tolerance in SIDES[side][2]:
                seconds, values, count = run(tolerance)
                worse = max((own - least) / start for own, least in zip(values, asked["prepare"], strict=True))
                answer = {"tolerance": tolerance, "excess": worse, "seconds": seconds, "nonzeros": count}
                if worse <= ALLOWED or seconds > 4 * LIMIT:
                    break
        print(json.dumps(answer | {"start": start, "rows": x.shape[0], "columns": x.shape[1]}), flush=True)


class Side:
    """A process of `serve`."""

    def __init__(self, python: str, side: str, name: str, loss: str, scale: float, threads: int) -> None:
        """Start the process with at most `threads` threads."""
        count = str(threads)
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "NUMBA_NUM_THREADS": count}
        environment |= {"OPENBLAS_NUM_THREADS": count, "OMP_NUM_THREADS": count}
        command = [python, str(Path(__file__)), json.dumps([side, name, loss, scale])]
        self.process = subprocess.Popen(command, env=environment, stdin=-1, stdout=-1, stderr=-1, text=True)

    def ask(self, **what: Any) -> dict[str, Any]:
        """Return the answer to a line; a record with `error` if the process has ended."""
        assert self.process.stdin is not None and self.process.stdout is not None  # noqa: PT018 - pipes
        try:
            self.process.stdin.write(json.dumps(what) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": self._reason()}
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": self._reason()}

    def _reason(self) -> str:
        """Return the last line of the errors of a process that has ended."""
        assert self.process.stderr is not None
        return (self.process.stderr.read().strip().splitlines() or ["It ended."])[-1][:300]

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def version_of(python: str, distribution: str) -> str:
    """Return the version of a distribution in the environment of `python`; "" if it is not installed."""
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def measure(
    python: str, name: str, loss: str, rounds: int, scale: float, threads: int, sides: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield a record of each side of one set and loss, measured in turns; `python` has the competitors."""
    base = {"suite": "path", "set": name, "loss": loss, "threads": threads, "scale": scale}
    own = Side(sys.executable, "workbench", name, loss, scale, threads)
    others: dict[str, Side] = {}
    try:
        least = own.ask(run=EXACT)
        if "error" in least:
            raise RuntimeError(least["error"])
        version = importlib.metadata.version("sparse-workbench")
        got = own.ask(prepare=least["values"])
        runs: dict[str, dict[str, Any]] = {"workbench": {**got, "seconds": [], "version": version}}
        runs["certified"] = {"tolerance": GAP, "seconds": [], "version": version, **_sizes(least)}
        for side in sides:
            if side in OURS:
                continue
            distribution, losses, _ = SIDES[side]
            if loss not in losses or name not in ONLY.get(side, SETS):
                continue
            record = {"version": version_of(python, distribution)}
            if not record["version"]:
                yield base | record | {"side": side, "error": f"{distribution} is not installed"}
                continue
            others[side] = Side(python, side, name, loss, scale, threads)
            got = others[side].ask(prepare=least["values"])
            if "error" in got:
                yield base | record | {"side": side, "error": got["error"]}
                continue
            first = got.pop("seconds")
            runs[side] = record | got | {"seconds": [first] if first > LIMIT else [], "is_once": first > LIMIT}
        for number in range(rounds):
            order = list(runs) if number % 2 else list(runs)[::-1]
            for side in order:
                if runs[side].get("is_once"):
                    continue
                got = (own if side in OURS else others[side]).ask(run=runs[side]["tolerance"])
                if "error" in got:
                    runs[side]["error"] = got["error"]
                    continue
                runs[side]["seconds"].append(got["seconds"])
                runs[side]["nonzeros"] = got["nonzeros"]
                pairs = zip(got["values"], least["values"], strict=True)
                runs[side]["excess"] = max((one - best) / got["start"] for one, best in pairs)
        for side, record in runs.items():
            yield base | record | {"side": side, "load": os.getloadavg()[0]}
    finally:
        for process in (own, *others.values()):
            process.end()


def _sizes(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the sizes of the set from an answer."""
    return {name: answer[name] for name in ("rows", "columns")}


def ratios(found: list[dict]) -> list[dict[str, Any]]:
    """Return a line for each set and loss: the fastest other side that reached the minimum, divided by ours."""
    lines = []
    good = [r for r in found if r.get("suite") == "path" and r.get("seconds") and "error" not in r]
    for key in dict.fromkeys((r["set"], r["loss"], r["threads"]) for r in good):
        rows = [r for r in good if (r["set"], r["loss"], r["threads"]) == key]
        own = [s for r in rows if r["side"] == "workbench" for s in r["seconds"]]
        others = {
            side: [s for r in rows if r["side"] == side for s in r["seconds"]]
            for side in dict.fromkeys(r["side"] for r in rows)
            if side not in OURS and all(r["excess"] <= ALLOWED for r in rows if r["side"] == side)
        }
        if not own or not others:
            continue
        certified = [s for r in rows if r["side"] == "certified" for s in r["seconds"]] or own
        fastest = min(others, key=lambda side: median(others[side]))
        lines.append(
            {
                "set": key[0], "loss": key[1], "threads": key[2], "own": own, "others": others, "fastest": fastest,
                "ratio": median(others[fastest]) / median(own),
                "certified": median(others[fastest]) / median(certified),
                "low": min(others[fastest]) / max(own), "high": max(others[fastest]) / min(own),
                "nonzeros": rows[0].get("nonzeros", 0),
            }
        )  # fmt: skip
    return lines


def page(found: list[dict], command: str) -> str:
    """Return the page of the records, in Markdown."""
    lines, out = ratios(found), ["# Paths over alpha with an L1 penalty", ""]
    if lines:
        every = [line["ratio"] for line in lines]
        out += [
            f"The fastest of the others takes {geometric_mean(every):.2f} times our time (geometric mean; from "
            f"{min(every):.2f} to {max(every):.2f}).",
            "",
            "20 alphas to a hundredth of the largest, no intercept. Each side has the loosest tolerance with which "
            "its objective is within 1e-4 of the loss of zero weights of the minimum. Certified: the same others by "
            "ours at a measured duality gap of 1e-4, its default, which others but celer do not measure. Seconds are "
            "medians of the rounds; the interval of the ratio is from the smallest to the largest.",
            "",
            "| set | loss | threads | ours, s | ratio | interval | certified | fastest | others, s |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for e in lines:
            others = ", ".join(f"{side} {median(s):.3g}" for side, s in e["others"].items())
            out.append(
                f"| {WORDS[e['set']]} | {e['loss']} | {e['threads']} | {median(e['own']):.3g} | {e['ratio']:.2f} | "
                f"{e['low']:.2f} to {e['high']:.2f} | {e['certified']:.2f} | {e['fastest']} | {others} |"
            )
    versions = {r["side"]: r["version"] for r in found if r.get("version")}
    out += ["", "Sides: " + ", ".join(f"{side} {version}" for side, version in versions.items()) + "."]
    for r in found:
        if "error" in r:
            out.append(f"\n{r['side']}, {r['set']}, {r['loss']}: {r['error']}.")
        elif r.get("excess", 0) > ALLOWED:
            out.append(f"\n{r['side']}, {r['set']}, {r['loss']}: {r['excess']:.1e} above the minimum, left out.")
    loads = [record["load"] for record in found if "load" in record]
    threads = sorted({record["threads"] for record in found if "threads" in record})
    measured = [name for name in SETS if any(record.get("set") == name for record in found)]
    only = "" if len(measured) == len(SETS) else "".join(f" --only {name}" for name in measured)
    out += [
        "",
        f"Load of the machine while it was measured: up to {max(loads, default=0):.1f}.",
        "",
        *(f"`{command} --python PYTHON --threads {one}{only}`\n" for one in threads),
    ]
    return "\n".join(out)


def run(folder: Path, python: str, rounds: int, quick: bool, threads: int, sets: tuple[str, ...]) -> Path:
    """Measure all sides on the sets, append the records to a folder of results, and write and return their page."""
    from workbench.measure import machine

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RECORDS
    with path.open("a", encoding="utf-8") as file:
        for name in sets:
            for loss in LOSSES:
                for record in measure(python, name, loss, rounds, 0.05 if quick else 1.0, threads, list(SIDES)):
                    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                    file.write(json.dumps({"time": now, "machine": machine.machine_id(), **record}) + "\n")
                    file.flush()
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    text = page(found, f"python -m benchmarks path --folder {folder}")
    (folder / PAGE).write_text(text, encoding="utf-8")
    return folder / PAGE


if __name__ == "__main__":
    serve(*json.loads(sys.argv[1]))
