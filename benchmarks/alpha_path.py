"""Paths over alpha with an L1 penalty compared with the list of linear competitors: `benchmarks path`.

Twenty alphas, from the largest to a hundredth of it, without an intercept: what every side can do. Each side, ours too,
gets the loosest tolerance of its ladder with which its objective, computed here in float64, is within 1e-4 of the loss
of zero weights of the minimum, for every alpha; the minimum is ours at a gap of 1e-7. "certified" is ours at its
default, a measured duality gap of 1e-4, which bounds that distance and is far more than it. A side is a process that
keeps its data and compiled code; they run in turns. One that has not reached the minimum after many times our seconds
is left out, and its record says where it was. The machine should be idle: its load is in the records.
"""

import importlib.metadata
import json
import os
import queue
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks import linear

ALPHAS, WEAKEST = 20, 1e-2
ALLOWED, GAP, EXACT = 1e-4, 1e-4, 1e-7
"""Distance of the objective to the minimum, and duality gaps of ours: as timed, and as the minimum."""
LIMIT = 5.0
"""Seconds of a run above which a side is not run again in further rounds."""
CAP, CAP_TIMES = 12.0, 12.0
"""Seconds that a side has at least to find its tolerance, and how many times our run they are if that is more."""
SECONDS_COMPILE, SECONDS_RUN, SHARE_COMPILED = 90.0, 200.0, 0.02
"""Seconds for imports, data and compiling, which is done on this share of the rows, and for any other answer."""
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
Sides = dict[str, tuple[tuple[str, ...], tuple[float, ...]]]
SIDES: Sides = {
    "workbench": (("logistic", "squared"), (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4)),
    "celer": (("logistic", "squared"), (1e-4, 1e-5, 1e-6)),
    "skglm": (("logistic", "squared"), (1e-2, 1e-3, 1e-4, 1e-5)),
    "liblinear primal": (("logistic",), (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)),
    "scikit-learn lasso_path": (("squared",), (1e-3, 1e-4, 1e-5, 1e-6)),
    "scikit-learn saga": (("logistic",), (1e-3, 1e-4, 1e-5)),
    "snapml": (("logistic",), (1e-2, 1e-3, 1e-4, 1e-5)),
    "cyanure": (("logistic", "squared"), (1e-2, 1e-3, 1e-4, 1e-5)),
    "glum": (("logistic", "squared"), (1e-3, 1e-4, 1e-5)),
}
"""Losses, and tolerances from loose to tight, of each side; ours is the duality gap, skglm's are multiples of the
largest alpha, as it compares them with the gradient. Names are those of the list."""
ONLY = {"scikit-learn saga": ("dense", "tall"), "glum": ("dense", "tall")}
"""Sets of a side that takes minutes, or a matrix of all pairs of columns, on the others."""


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
    if side == "liblinear primal":
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
    if side == "scikit-learn lasso_path":
        from sklearn.linear_model import lasso_path

        return lambda tol: list(lasso_path(x, y, alphas=alphas, tol=tol, max_iter=100_000)[1].T)
    rows = np.ascontiguousarray(x) if isinstance(x, np.ndarray) else scipy.sparse.csr_matrix(x)
    set_alpha, made = _estimator(side, loss, len(y))
    labels = y.astype(np.int64) if loss == "logistic" and side == "cyanure" else y

    def fit_estimator(tolerance: float) -> list[np.ndarray]:
        """Train an estimator, each alpha from the weights before if it can."""
        found = []
        made.__dict__.pop("coef_", None)
        for alpha in alphas:
            made.set_params(**set_alpha(float(alpha)), **{TOLERANCES.get(side, "tol"): tolerance})
            found.append(np.array(made.fit(rows, labels).coef_, np.float64).ravel())
        return found

    return fit_estimator


TOLERANCES = {"glum": "gradient_tol"}
"""Name of the tolerance of sides that have another one than tol."""


def _estimator(side: str, loss: str, rows: int) -> tuple[Callable[[float], dict[str, float]], Any]:
    """Return (parameters by alpha, unfitted estimator of rows as csr or dense) of a side."""
    if side == "snapml":
        from snapml import LogisticRegression

        given: dict[str, Any] = {"penalty": "l1", "dual": False, "fit_intercept": False, "max_iter": 2000}
        return lambda alpha: {"regularizer": alpha * rows}, LogisticRegression(**given)
    if side == "cyanure":
        from cyanure import estimators

        kind = estimators.LogisticRegression if loss == "logistic" else estimators.Regression
        given = {"penalty": "l1", "fit_intercept": False, "verbose": False, "warm_start": True, "max_iter": 2000}
        return lambda alpha: {"lambda_1": alpha}, kind(**given, n_threads=int(os.environ["OMP_NUM_THREADS"]))
    if side == "glum":
        from glum import GeneralizedLinearRegressor

        given = {"l1_ratio": 1, "fit_intercept": False, "warm_start": True, "max_iter": 1000}
        family = "binomial" if loss == "logistic" else "normal"
        return lambda alpha: {"alpha": alpha}, GeneralizedLinearRegressor(family=family, **given)
    from sklearn.linear_model import LogisticRegression

    given = {"l1_ratio": 1.0, "solver": "saga", "fit_intercept": False, "warm_start": True, "max_iter": 2000}
    return lambda alpha: {"C": 1 / (alpha * rows)}, LogisticRegression(**given)


def serve(side: str, name: str, loss: str, scale: float) -> None:
    """Answer lines of JSON, each with lines of which the last has "is_last", until the input ends.

    {"compile": share of the rows} trains on so few, {"prepare": objectives at the minimum} tries tolerances from loose
    to tight, a line each, and {"run": tolerance} trains.
    """
    warnings.simplefilter("ignore")
    x, y, alphas = _problem(name, loss, scale)
    start, fit = objective(x, y, loss, np.zeros(x.shape[1]), 0.0), fit_of(side, x, y, loss, alphas)
    sizes = {"start": start, "rows": x.shape[0], "columns": x.shape[1]}

    def run(tolerance: float) -> dict[str, Any]:
        """Return seconds, objectives, and the weights that are not zero at the last alpha, of a run."""
        begin = time.perf_counter()
        found = fit(tolerance)
        seconds = time.perf_counter() - begin
        values = [objective(x, y, loss, weights, float(alpha)) for weights, alpha in zip(found, alphas, strict=True)]
        return sizes | {"seconds": seconds, "values": values, "nonzeros": int(np.count_nonzero(found[-1]))}

    def tell(answer: dict[str, Any]) -> None:
        """Print a line."""
        print(json.dumps(answer), flush=True)

    for line in sys.stdin:
        asked = json.loads(line)
        if "compile" in asked:
            own = _problem(name, loss, scale * asked["compile"])
            fit_of(side, *own[:2], loss, own[2])(SIDES[side][1][0])
            tell({"is_last": True})
        elif "run" in asked:
            tell(run(asked["run"]) | {"is_last": True})
        else:
            for tolerance in SIDES[side][1]:
                got = run(tolerance)
                excess = max((own - least) / start for own, least in zip(got["values"], asked["prepare"], strict=True))
                is_last = excess <= ALLOWED or tolerance == SIDES[side][1][-1]
                tell(got | {"tolerance": tolerance, "excess": excess, "values": [], "is_last": is_last})
                if is_last:
                    break


def _problem(name: str, loss: str, scale: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return (X, targets, alphas) of a set."""
    x, classes, numbers = draw_set(name, scale)
    y = classes if loss == "logistic" else numbers
    return x, y, largest_alpha(x, y, loss) * np.geomspace(1, WEAKEST, ALPHAS)


class Side:
    """A process of `serve`."""

    def __init__(self, python: str, side: str, name: str, loss: str, scale: float, threads: int) -> None:
        """Start the process with at most `threads` threads."""
        count = str(threads)
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "NUMBA_NUM_THREADS": count}
        environment |= {"OPENBLAS_NUM_THREADS": count, "OMP_NUM_THREADS": count}
        command = [python, str(Path(__file__)), json.dumps([side, name, loss, scale])]
        self.process = subprocess.Popen(command, env=environment, stdin=-1, stdout=-1, stderr=-1, text=True)
        self.lines: queue.Queue[str] = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        """Hand on what the process prints, and "" at its end."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def ask(self, seconds: float, **what: Any) -> dict[str, Any]:
        """Return the last line of the answer, of which each has `seconds`; with `error` if it did not come.

        A process that does not answer in time is ended. What it said before is in the answer.
        """
        assert self.process.stdin is not None
        answer: dict[str, Any] = {}
        try:
            self.process.stdin.write(json.dumps(what) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": self._reason()}
        end = time.monotonic() + seconds
        while not answer.get("is_last"):
            try:
                line = self.lines.get(timeout=max(end - time.monotonic(), 0.0))
            except queue.Empty:
                self.process.kill()
                where = f", {answer['excess']:.1e} above the minimum before" if "excess" in answer else ""
                return answer | {"error": f"left out after {seconds:.3g} s{where}"}
            if not line:
                return answer | {"error": self._reason()}
            answer = json.loads(line) if line.startswith("{") else answer
        return answer

    def _reason(self) -> str:
        """Return the last line of the errors of a process that has ended."""
        assert self.process.stderr is not None
        return (self.process.stderr.read().strip().splitlines() or ["It ended."])[-1][:300].rstrip(".")

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        self.reader.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def measure(
    python: str, name: str, loss: str, rounds: int, scale: float, threads: int, sides: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield a record of each side of one set and loss, measured in turns; `python` has the competitors."""
    versions = linear.versions(python)
    base = {"suite": "path", "list": linear.LIST, "set": name, "loss": loss, "threads": threads, "scale": scale}
    processes = {"workbench": Side(sys.executable, "workbench", name, loss, scale, threads)}
    own = processes["workbench"]
    try:
        least = own.ask(SECONDS_RUN, run=EXACT)
        got = own.ask(SECONDS_RUN, prepare=least.get("values", []))
        if error := least.get("error") or got.get("error"):
            raise RuntimeError(error)
        version = importlib.metadata.version("sparse-workbench")
        cap = max(CAP, CAP_TIMES * got["seconds"])
        runs: dict[str, dict[str, Any]] = {"workbench": {**_columns(got), "seconds": [], "version": version}}
        runs["certified"] = {**_columns(least), "tolerance": GAP, "seconds": [], "version": version}
        for side in sides:
            losses = SIDES[side][0] if side in SIDES else ()
            if side in OURS or loss not in losses or name not in ONLY.get(side, SETS):
                continue
            one = linear.get(side)
            record = {"side": side, "version": versions.get(one.distribution, ""), "cap": cap}
            if not record["version"]:
                yield base | record | {"error": f"{one.distribution} is not installed"}
                continue
            processes[side] = Side(python, side, name, loss, scale, threads)
            got = processes[side].ask(SECONDS_COMPILE, compile=SHARE_COMPILED)
            if "error" not in got:
                got = processes[side].ask(cap, prepare=least["values"])
            if "error" in got:
                yield base | record | _columns(got) | {"error": got["error"]}
                continue
            is_once = got["seconds"] > LIMIT
            runs[side] = record | _columns(got) | {"seconds": [got["seconds"]] if is_once else [], "is_once": is_once}
        for number in range(rounds):
            order = list(runs) if number % 2 else list(runs)[::-1]
            for side in order:
                if runs[side].get("is_once") or "error" in runs[side]:
                    continue
                process = own if side in OURS else processes[side]
                got = process.ask(SECONDS_RUN, run=runs[side]["tolerance"])
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
        for process in processes.values():
            process.end()


def _columns(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a record that an answer has, without seconds."""
    return {key: answer[key] for key in ("tolerance", "excess", "nonzeros", "rows", "columns") if key in answer}


def newest(found: list[dict]) -> list[dict[str, Any]]:
    """Return of each set, share of its rows, loss, number of threads and side the record that was written last."""
    names = ("set", "scale", "loss", "threads", "side")
    return list({tuple(record.get(name) for name in names): record for record in found}.values())


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
    known = [
        {
            "candidate": r["side"],
            "status": "failed" if "error" in r else "ok",
            "reason": r.get("error", ""),
            "versions": {linear.get(r["side"]).distribution: r["version"]},
            "list": r.get("list"),
        }
        for r in found
        if linear.name_of(r["side"])
    ]
    out += ["", linear.describe("path", known)]
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
    found = newest([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])
    text = page(found, f"python -m benchmarks path --folder {folder}")
    (folder / PAGE).write_text(text, encoding="utf-8")
    return folder / PAGE


if __name__ == "__main__":
    serve(*json.loads(sys.argv[1]))
