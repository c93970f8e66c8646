"""Hand-made records of `benchmarks fair`."""

from benchmarks import tables

SIDES = {
    ("project", "dense"): "project, dense, execution epoch",
    ("project", "sparse"): "project, csr, execution epoch",
    ("competitor", "dense"): "NumPy with BLAS",
    ("competitor", "sparse"): "Numba CSR, active columns",
}


def record(side, kind, seconds, density=0.1, features=256, batch_rows=32, width=4, **more):
    """A record that is ok, with three rounds alike, unless `more` says otherwise."""
    name = f"D{features}-B{batch_rows}-N{width}-{100 * density:g}%"
    settings = {"case": name, "features": features, "batch_rows": batch_rows, "width": width}
    settings |= {"density": density, "rows": 1000, "threads": 2, "machine": "m", "key": name, "status": "ok"}
    settings |= {"candidate": SIDES[side, kind], "side": side, "kind": kind, "note": "", "error": 1e-7}
    times = {"seconds": seconds, "samples": [seconds] * 3, "busy_others": 0.0}
    return tables.FAIR.new_row(**settings | times | more)


def configuration(project, competitor, **more):
    """Four records: (dense, sparse) seconds of the project's and of the competitors' best."""
    seconds = {"project": project, "competitor": competitor}
    return [
        record(side, kind, each, **more)
        for side, both in seconds.items()
        for kind, each in zip(("dense", "sparse"), both, strict=True)
    ]
