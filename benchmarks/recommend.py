"""Alternating least squares and EASE compared with the library implicit and with NumPy: `benchmarks recommend`.

Each side runs in separate processes, in turns, on the same sets, which are synthetic and fixed by a seed: genres of
items, Zipf within a genre, users with a few of them. Both reach a loss that is computed here, in float64, from their
factors; recall at 20 is that of entries held out. The library is asked with one BLAS thread and its own threads, as it
advises. What the machine does besides slows both sides down alike.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np
import scipy.sparse

SETS = {
    "10,000 users x 8,000 items": (10_000, 8_000, 20, 1),
    "30,000 users x 41,000 items": (30_000, 41_000, 11, 2),
    "60,000 users x 15,000 items": (60_000, 15_000, 47, 3),
}
"""Users, items, mean entries of a user, seed."""
FACTORS = (32, 64, 128, 256)
SIDES = ("workbench", "implicit cg", "implicit cholesky")
ALPHA, REGULARIZATION, STEPS = 10.0, 1.0, 3
GENRES = 40
RECORDS, PAGE = "bench-recommend.jsonl", "bench-recommend.md"


def draw_set(users: int, items: int, mean: int, seed: int) -> tuple[Any, Any]:
    """Return (entries to train on, a tenth held out) as CSR matrices of ones [users, items]."""
    random = np.random.default_rng(seed)
    counts = np.minimum(2 + random.pareto(1.5, users) * mean / 2, items // 8).astype(int)
    user = np.repeat(np.arange(users), counts)
    popularity = 1 / np.arange(1, items + 1) ** 0.8
    order = np.argsort(random.integers(0, GENRES, items), kind="stable")
    bounds = np.linspace(0, items, GENRES + 1).astype(int)  # items of a genre, in `order`
    cumulated = np.concatenate(([0], popularity[order].cumsum()))
    liked = random.integers(0, GENRES, (users, 3))[user, random.integers(0, 3, len(user))]
    is_any = random.random(len(user)) < 0.25
    low = np.where(is_any, 0, cumulated[bounds[liked]])
    high = np.where(is_any, cumulated[-1], cumulated[bounds[liked + 1]])
    drawn = np.searchsorted(cumulated, low + (high - low) * random.random(len(user)), side="right") - 1
    pairs = np.unique(user * items + order[np.clip(drawn, 0, items - 1)])
    is_held = random.random(len(pairs)) < 0.1
    parts = [
        scipy.sparse.csr_matrix((np.ones(len(kept), np.float32), np.divmod(kept, items)), shape=(users, items))
        for kept in (pairs[~is_held], pairs[is_held])
    ]
    return parts[0], parts[1]


def loss_of(matrix: Any, x: np.ndarray, y: np.ndarray) -> float:
    """Return the loss of implicit feedback with confidence ALPHA where there is an entry, in float64."""
    x, y = x.astype(float), y.astype(float)
    total = float(np.sum((x.T @ x) * (y.T @ y)) + REGULARIZATION * ((x**2).sum() + (y**2).sum()))
    for first in range(0, len(x), 4096):
        block = matrix[first : first + 4096].tocoo()
        dot = np.einsum("ij,ij->i", x[first : first + 4096][block.row], y[block.col])
        total += float(np.sum(ALPHA * (1 - dot) ** 2 - dot**2))
    return total


def recall_of(matrix: Any, held: Any, x: np.ndarray, y: np.ndarray, most: int = 1000) -> float:
    """Return recall at 20 of the entries held out, over the first `most` users that have some."""
    rows = np.flatnonzero(np.diff(held.indptr))[:most]
    scores = x[rows] @ y.T
    taken = matrix[rows].tocoo()
    scores[taken.row, taken.col] = -np.inf
    best = np.argpartition(-scores, 20, axis=1)[:, :20]
    hits = np.asarray(held[rows].todense())[np.arange(len(rows))[:, None], best].sum(axis=1)
    return float(np.mean(hits / np.minimum(20, np.diff(held.indptr)[rows])))


class Laps:
    """Seconds of parts of a process, by the clock and of its processors: the second hardly knows other programs."""

    def __init__(self) -> None:
        """Start the first part."""
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.restart()

    def restart(self) -> None:
        """Start a part now; what was since the last end is in none."""
        self._start = time.perf_counter(), time.process_time()

    def end(self) -> None:
        """End a part."""
        self.wall.append(time.perf_counter() - self._start[0])
        self.cpu.append(time.process_time() - self._start[1])


def status(name: str) -> int:
    """Return a size in bytes of this process from Linux, such as VmRSS."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def reset_peak() -> None:
    """Make the largest memory of this process, VmHWM, that of now."""
    Path("/proc/self/clear_refs").write_text("5")


def measure(side: str, name: str, factors: int, iterations: int, threads: int) -> dict[str, Any]:
    """Return the record of one process: seconds of each iteration, recall after it, loss, seconds of lists, memory."""
    matrix, held = draw_set(*SETS[name])
    laps, recalls, bytes_peak = Laps(), [], None
    if side == "workbench":
        from kernels import threads as of_kernels
        from workbench.recommend import als, lists

        of_kernels.set_threads(threads)
        weights = als.weights_of("implicit", "given", ALPHA)

        def start(rows: Any) -> als.Factors:
            """Return a training on some rows."""
            return als.Factors(rows, factors, REGULARIZATION, 0.0, weights, STEPS, 0)

        start(matrix).iterate()  # compiles, also what is compiled for tables beyond the cache
        few = als.Factors(matrix[:300], factors, REGULARIZATION, 0.0, weights, STEPS, 0).tables
        lists.best(lists.of_factors(*few), 300, matrix.shape[1], 20, matrix[:300])
        reset_peak()
        before = status("VmRSS")
        laps.restart()
        training = start(matrix)
        for _ in range(iterations):
            training.iterate()
            laps.end()
            if bytes_peak is None:  # of an iteration, not of the recall after it
                bytes_peak = status("VmHWM") - before
            recalls.append(recall_of(matrix, held, training.tables[0], training.tables[1]))
            laps.restart()
        x, y = training.tables
        laps.restart()
        lists.best(lists.of_factors(x, y), len(x), len(y), 20, matrix)
        laps.end()
    else:
        from implicit.cpu.als import AlternatingLeastSquares

        model = AlternatingLeastSquares(
            factors=factors, regularization=REGULARIZATION, alpha=ALPHA, iterations=iterations, num_threads=threads,
            random_state=0, use_cg="cg" in side,
        )  # fmt: skip

        def after(iteration: int, *_: object) -> None:
            """Keep the time of an iteration and the recall after it."""
            nonlocal bytes_peak
            laps.end()
            if bytes_peak is None:
                bytes_peak = status("VmHWM") - before
            recalls.append(recall_of(matrix, held, model.user_factors, model.item_factors))
            laps.restart()

        reset_peak()
        before = status("VmRSS")
        laps.restart()
        model.fit(matrix, show_progress=False, callback=after)
        x, y = np.asarray(model.user_factors), np.asarray(model.item_factors)
        laps.restart()
        model.recommend(np.arange(len(x)), matrix, N=20)
        laps.end()
    size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    return {
        "suite": "recommend", "side": side, "set": name, "entries": int(matrix.nnz), "factors": factors,
        "threads": threads, "seconds": laps.wall[:-1], "seconds_cpu": laps.cpu[:-1], "recall": recalls,
        "loss": loss_of(matrix, x, y), "seconds_lists": laps.wall[-1], "seconds_cpu_lists": laps.cpu[-1],
        "bytes_peak": bytes_peak, "bytes_data_and_factors": 2 * size + x.nbytes + y.nbytes,
        "load": os.getloadavg()[0],
    }  # fmt: skip


def measure_ease(items: int, threads: int) -> dict[str, Any]:
    """Return the record of EASE and of NumPy's inverse with SciPy's product, one after the other, in this process."""
    from kernels import threads as of_kernels
    from workbench.recommend import ease

    of_kernels.set_threads(threads)
    matrix, _ = draw_set(3 * items, items, 30, 4)
    ease.fit(scipy.sparse.csr_array(matrix[:, :200]), 100.0)  # compiles
    own, other = Laps(), Laps()
    for _ in range(2):
        own.restart()
        weights = ease.fit(scipy.sparse.csr_array(matrix), 100.0)
        own.end()
        other.restart()
        gram = (matrix.T @ matrix).toarray()
        gram[np.diag_indices(items)] += 100
        inverse = np.linalg.inv(gram)
        expected = inverse / -np.diag(inverse)
        np.fill_diagonal(expected, 0)
        other.end()
    error = float(np.abs(weights - expected).max())
    return {
        "suite": "ease", "items": items, "entries": int(matrix.nnz), "threads": threads, "seconds": own.cpu,
        "seconds_numpy": other.cpu, "error": error, "load": os.getloadavg()[0],
    }  # fmt: skip


def in_process(python: str, *words: object) -> dict[str, Any]:
    """Return the record that a fresh process of this file prints; `python` is that of an environment."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    if str(words[0]).startswith("implicit") or words[-1] == 1:
        environment["OPENBLAS_NUM_THREADS"] = "1"  # its advice: threads of BLAS and its own are in each other's way
    command = [python, str(Path(__file__)), json.dumps(words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"suite": "recommend", "side": words[0], "error": done.stderr.strip().splitlines()[-1:]}
    return json.loads(done.stdout.splitlines()[-1])


def records(python: str, sets: list[str], factors: tuple[int, ...], rounds: int, threads: int) -> Iterator[dict]:
    """Yield the records of all sides, in turns; `python` is that of the environment that has the library implicit."""
    for name in sets:
        for width in factors:
            for number in range(rounds):
                for side in SIDES if width <= 64 and name == next(iter(sets)) else SIDES[:2]:
                    own = sys.executable if side == "workbench" else python
                    yield in_process(own, side, name, width, 8, threads) | {"round": number}


def stamped(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the time now and the machine in front."""
    from workbench.measure import machine

    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"time": now, "machine": machine.machine_id(), **record}


def seconds_to(record: dict, level: float) -> float:
    """Return the processor seconds of training until the recall is `level`, infinity if it never is."""
    for number, recall in enumerate(record["recall"]):
        if recall >= level:
            return float(sum(record["seconds_cpu"][: number + 1]))
    return float("inf")


def ratios(found: list[dict]) -> list[dict[str, Any]]:
    """Return a line for each set and number of factors: what the library's fastest side takes, divided by ours."""
    lines = []
    known = [record for record in found if record.get("suite") == "recommend" and "error" not in record]
    for name, width in dict.fromkeys((record["set"], record["factors"]) for record in known):
        of = {side: [r for r in known if (r["side"], r["set"], r["factors"]) == (side, name, width)] for side in SIDES}
        own, cg = of[SIDES[0]], of[SIDES[1]]
        if not own or not cg:
            continue
        best = max(max(record["recall"]) for group in of.values() for record in group)
        reached = {side: [seconds_to(record, 0.99 * best) for record in group] for side, group in of.items()}
        times = {side: median(each) for side, each in reached.items() if each and float("inf") not in each}
        others = [value for side, value in times.items() if side != SIDES[0]]
        lines.append(
            {
                "set": name, "factors": width, "entries": own[0]["entries"], "iterations": len(own[0]["seconds"]),
                "seconds": median(s for r in own for s in r["seconds_cpu"]),
                "ratio": median(s for r in cg for s in r["seconds_cpu"])
                / median(s for r in own for s in r["seconds_cpu"]),
                "loss": median(r["loss"] for r in own) / median(r["loss"] for r in cg),
                "recall": max(own[0]["recall"]), "recall_other": max(cg[0]["recall"]),
                "ratio_reach": min(others) / times[SIDES[0]] if others and SIDES[0] in times else None,
                "ratio_lists": median(r["seconds_cpu_lists"] for r in cg)
                / median(r["seconds_cpu_lists"] for r in own),
                "memory": median(r["bytes_peak"] / r["bytes_data_and_factors"] for r in own),
                "load": max(r["load"] for r in own + cg),
            }
        )  # fmt: skip
    return lines


def page(found: list[dict], command: str) -> str:
    """Return the page of the records, in Markdown."""
    lines, shown = ratios(found), lambda value: "never" if value is None else f"{value:.2f}"
    out = ["# Recommenders: alternating least squares and the library implicit", ""]
    if lines:
        all_ratios = [line["ratio"] for line in lines]
        out += [
            "Times are processor seconds, as other programs ran; the records have those of the clock, too.",
            "",
            f"An iteration: the library's conjugate gradients take {geometric_mean(all_ratios):.2f} times our time "
            f"(geometric mean; from {min(all_ratios):.2f} to {max(all_ratios):.2f}).",
            "",
            "Loss: ours divided by theirs after the same iterations. Reach: seconds to 99 % of the best recall at 20, "
            "of the library's faster solver, divided by ours; never: ours or theirs did not (recall is known "
            "to about 0.005). Memory: peak above that before, divided by the data in both orders and the factors.",
            "",
            "| set | entries | factors | iterations | s each | ratio | loss | recall, its | reach | lists | memory |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        out += [
            f"| {e['set']} | {e['entries']:,} | {e['factors']} | {e['iterations']} | {e['seconds']:.3g} | "
            f"{e['ratio']:.2f} | {e['loss']:.4f} | {e['recall']:.3f}, {e['recall_other']:.3f} | "
            f"{shown(e['ratio_reach'])} | {e['ratio_lists']:.2f} | {e['memory']:.2f} |"
            for e in lines
        ]
    for record in found:
        if record.get("suite") == "ease":
            ratio = median(record["seconds"]) / median(record["seconds_numpy"])
            out += [
                "",
                f"EASE of {record['items']:,} items: {median(record['seconds']):.3g} s, {ratio:.2f} times SciPy's "
                f"product and NumPy's inverse; largest difference {record['error']:.1g}.",
            ]
    loads = [record["load"] for record in found if "load" in record]
    out += [
        "",
        f"Load of the machine while it was measured: up to {max(loads, default=0):.1f}.",
        "",
        f"`{command}`",
        "",
    ]
    return "\n".join(out)


def run(folder: Path, python: str, rounds: int, quick: bool, threads: int) -> Path:
    """Measure all sides, append the records to a folder of results, and write and return their page."""
    folder.mkdir(parents=True, exist_ok=True)
    sets, factors = (list(SETS)[:1], FACTORS[:2]) if quick else (list(SETS), FACTORS)
    path = folder / RECORDS
    with path.open("a", encoding="utf-8") as file:
        for record in records(python, sets, factors, rounds, threads):
            file.write(json.dumps(stamped(record)) + "\n")
            file.flush()
        record = in_process(sys.executable, "ease", 1_000 if quick else 10_000, threads)
        file.write(json.dumps(stamped(record)) + "\n")
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    text = page(found, f"python -m benchmarks recommend --folder {folder}")
    (folder / PAGE).write_text(text, encoding="utf-8")
    return folder / PAGE


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    made = measure_ease(*asked[1:]) if asked[0] == "ease" else measure(*asked)
    print(json.dumps(made))
