"""Alternating least squares and EASE compared with the library implicit and with NumPy: `benchmarks recommend`.

Each side runs in separate processes, in turns, on the same sets, which are synthetic and fixed by a seed: genres of
items, Zipf within a genre, users with a few of them. Both reach a loss that is computed here, in float64, from their
factors; recall at 20 is that of entries held out. The library is asked with one BLAS thread and its own threads, as it
advises. The machine should be idle: its load is in the records.
"""

import ctypes
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
    "6,000 users x 3,700 items": (6_000, 3_700, 900, 6),
    "1,000,000 users x 100,000 items": (1_000_000, 100_000, 12, 5),
}
"""Users, items, mean entries of a user as drawn (a repeated pair counts once), seed. The fourth has the shape of
MovieLens 1M (Harper and Konstan 2015)."""
FACTORS = {
    "10,000 users x 8,000 items": (16, 32, 64, 128, 256, 512),
    "30,000 users x 41,000 items": (32, 64, 128, 256),
    "60,000 users x 15,000 items": (32, 64, 128, 256),
    "6,000 users x 3,700 items": (32, 64, 128, 256),
    "1,000,000 users x 100,000 items": (32,),
}
"""Numbers of factors by set."""
FACTORS_OF_A_FILE = (32, 64, 128, 256)
SIDES = ("workbench", "implicit cg", "implicit cholesky")
ALPHA, REGULARIZATION, STEPS = 10.0, 50.0, 3
"""Confidence of an entry; the regularization of the best recall of 1, 10, 50, 200; steps of conjugate gradients."""
MOST_USERS, MOST_SCORES = 5_000, 4 * 10**7
"""Users and scores that recall after an iteration is computed from, at most."""
LISTED = 10_000
"""Users whose lists are timed, at most."""
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


def set_of(name: str) -> tuple[Any, Any]:
    """Return (entries to train on, a tenth held out) of a set of `SETS`, or of a file of entries [users, items]."""
    if name in SETS:
        return draw_set(*SETS[name])
    entries = scipy.sparse.load_npz(name).tocoo()
    is_held = np.random.default_rng(0).random(entries.nnz) < 0.1
    parts = [
        scipy.sparse.csr_matrix(
            (np.ones(kept.sum(), np.float32), (entries.row[kept], entries.col[kept])), shape=entries.shape
        )
        for kept in (~is_held, is_held)
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


def recall_of(matrix: Any, held: Any, x: np.ndarray, y: np.ndarray) -> float:
    """Return recall at 20 of the entries held out, over the first users that have some."""
    users = np.flatnonzero(np.diff(held.indptr))[: min(MOST_USERS, MOST_SCORES // len(y))]
    shares: list[float] = []
    for rows in np.array_split(users, max(len(users) * len(y) // 2**25, 1)):
        scores = x[rows] @ y.T
        taken = matrix[rows].tocoo()
        scores[taken.row, taken.col] = -np.inf
        best = np.argpartition(-scores, 20, axis=1)[:, :20]
        hits = held[rows].toarray()[np.arange(len(rows))[:, None], best].sum(axis=1)
        shares.extend(hits / np.minimum(20, np.diff(held.indptr)[rows]))
    return float(np.mean(shares))


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
    """Make the largest memory of this process, VmHWM, that of now, without what was freed before."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def measure(side: str, name: str, factors: int, iterations: int, threads: int) -> dict[str, Any]:
    """Return the record of one process: seconds of each iteration, recall after it, loss, seconds of lists, memory."""
    matrix, held = set_of(name)
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
        listed = min(len(x), LISTED)
        laps.restart()
        lists.best(lists.of_factors(x[:listed], y), listed, len(y), 20, matrix[:listed])
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
        listed = min(len(x), LISTED)
        model.recommend(np.arange(listed), matrix[:listed], N=20)
        laps.end()
    size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    return {
        "suite": "recommend", "side": side, "set": name_of(name), "entries": int(matrix.nnz), "factors": factors,
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
        "suite": "ease", "items": items, "entries": int(matrix.nnz), "threads": threads, "seconds": own.wall,
        "seconds_numpy": other.wall, "error": error, "load": os.getloadavg()[0],
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


def name_of(name: str) -> str:
    """Return the name of a set on a page: that of a file without its folder."""
    return name if name in SETS else Path(name).stem


def records(python: str, factors: dict[str, tuple[int, ...]], rounds: int, threads: int) -> Iterator[dict]:
    """Yield the records of all sides, in turns, for the numbers of factors of each set.

    `python` is that of the environment that has the library implicit.
    """
    for name, widths in factors.items():
        for width in widths:
            for number in range(rounds):
                for side in SIDES if width <= 64 and name == next(iter(SETS)) else SIDES[:2]:
                    own = sys.executable if side == "workbench" else python
                    yield in_process(own, side, name, width, 8, threads) | {"round": number}


def stamped(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the time now and the machine in front."""
    from workbench.measure import machine

    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"time": now, "machine": machine.machine_id(), **record}


def seconds_to(record: dict, level: float) -> float:
    """Return the seconds of training until the recall is `level`, which it is in some iteration."""
    first = next(number for number, recall in enumerate(record["recall"]) if recall >= level)
    return float(sum(record["seconds"][: first + 1]))


def ratios(found: list[dict]) -> list[dict[str, Any]]:
    """Return a line for each set and number of factors: what the library's fastest side takes, divided by ours."""
    lines = []
    known = [record for record in found if record.get("suite") == "recommend" and "error" not in record]
    for key in dict.fromkeys((record["set"], record["factors"], record["threads"]) for record in known):
        rows = [record for record in known if (record["set"], record["factors"], record["threads"]) == key]
        of = {side: [record for record in rows if record["side"] == side] for side in SIDES}
        own, cg = of[SIDES[0]], of[SIDES[1]]
        if not own or not cg:
            continue
        level = 0.99 * min(max(record["recall"]) for record in rows)
        reached = {side: median(seconds_to(r, level) for r in group) for side, group in of.items() if group}
        other = min(seconds for side, seconds in reached.items() if side != SIDES[0])
        lines.append(
            {
                "set": key[0], "factors": key[1], "threads": key[2], "entries": own[0]["entries"],
                "seconds": median(s for r in own for s in r["seconds"]),
                "ratio": median(s for r in cg for s in r["seconds"]) / median(s for r in own for s in r["seconds"]),
                "loss": median(r["loss"] for r in own) / median(r["loss"] for r in cg),
                "recall": max(max(r["recall"]) for r in own), "recall_other": max(max(r["recall"]) for r in cg),
                "ratio_reach": other / reached[SIDES[0]],
                "ratio_lists": median(r["seconds_lists"] for r in cg) / median(r["seconds_lists"] for r in own),
                "memory": median(r["bytes_peak"] / r["bytes_data_and_factors"] for r in own),
                "load": max(r["load"] for r in own + cg),
            }
        )  # fmt: skip
    return lines


def _commands(found: list[dict], command: str) -> list[str]:
    """Return the commands that measure the sets of the records, one for each number of threads and file of entries."""
    pairs = {
        (record["threads"], record["set"] if record["set"] not in SETS else "") for record in found if "set" in record
    }
    return [
        f"{command} --python PYTHON --threads {threads}{f' --entries {name}.npz' if name else ''}"
        for threads, name in sorted(pairs)
    ]


def page(found: list[dict], command: str) -> str:
    """Return the page of the records, in Markdown."""
    lines = ratios(found)
    out = ["# Recommenders: alternating least squares and the library implicit", ""]
    if lines:
        all_ratios = [line["ratio"] for line in lines]
        out += [
            "Times are those of the clock; the records have processor seconds, too.",
            "",
            f"An iteration: the library's conjugate gradients take {geometric_mean(all_ratios):.2f} times our time "
            f"(geometric mean; from {min(all_ratios):.2f} to {max(all_ratios):.2f}).",
            "",
            "Loss: ours divided by theirs after the same iterations. Recall: the best at 20 of all iterations, ours "
            "and theirs. Reach: seconds until the recall is 99 % of the lowest of these, of the library's faster "
            "solver, divided by ours. Lists: the best 20 items of 10,000 users at most, theirs "
            "divided by ours. Memory: peak "
            "above that before, divided by the data in both orders and the factors.",
            "",
            "| set | entries | factors | threads | s each | ratio | loss | recall, its | reach | lists | memory |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        out += [
            f"| {e['set']} | {e['entries']:,} | {e['factors']} | {e['threads']} | {e['seconds']:.3g} | "
            f"{e['ratio']:.2f} | {e['loss']:.4f} | {e['recall']:.3f}, {e['recall_other']:.3f} | "
            f"{e['ratio_reach']:.2f} | {e['ratio_lists']:.2f} | {e['memory']:.2f} |"
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
        *(f"`{one}`\n" for one in _commands(found, command)),
    ]
    return "\n".join(out)


def run(folder: Path, python: str, rounds: int, quick: bool, threads: int, entries: Path | None = None) -> Path:
    """Measure all sides, append the records to a folder of results, and write and return their page."""
    folder.mkdir(parents=True, exist_ok=True)
    factors: dict[str, tuple[int, ...]] = {next(iter(SETS)): (32, 64)} if quick else FACTORS
    if entries is not None:
        factors = {str(entries): FACTORS_OF_A_FILE}
    path = folder / RECORDS
    with path.open("a", encoding="utf-8") as file:
        for record in records(python, factors, rounds, threads):
            file.write(json.dumps(stamped(record)) + "\n")
            file.flush()
        if entries is None:
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
