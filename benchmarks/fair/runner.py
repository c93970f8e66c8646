"""The suite `benchmarks fair`: its table, its candidates, and the code that its records depend on."""

from benchmarks import tables
from benchmarks.experiment import Record, Suite
from benchmarks.fair.competitors import list_competitors, origin
from workbench.measure import closure
from workbench.sweeps import spec


def candidates() -> dict[str, Record]:
    """Return the columns `side`, `kind` and `note` of each candidate by its name."""
    return {one.name: {"side": one.side, "kind": one.kind, "note": one.note} for one in list_competitors()}


def source_hash() -> str:
    """Return the digest of the code of all candidates, of drawing the rows and of timing."""
    roots = {"benchmarks.fair.measure", "workbench.measure.child"} | {
        origin(competitor.name) for competitor in list_competitors()
    }
    for model in ("logistic", "softmax"):
        configurations = [
            {"gradient": "fused"},
            {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"},
        ]
        for settings in configurations:
            roots |= spec.roots_of(spec.Configuration(dataset="uniform", model=model, **settings))
    return closure.installed_code().digest(roots)


SUITE = Suite(
    table=tables.FAIR,
    work="benchmarks.fair.measure:answers",
    preload="benchmarks.preload",
    candidates=candidates,
    source_hash=source_hash,
    libraries=("torch", "scikit-learn"),
)
