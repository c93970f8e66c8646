"""Rows of trials at several sizes of tables that obey a known law."""

from dataclasses import replace

from tests.support import rows as maker

SIZES = (1_000, 10_000, 100_000)


def laws(size: int) -> tuple[maker.Law, ...]:
    """All rows of the tables take time and bytes by the size; the active ones the same at every size."""
    whole = replace(maker.SPARSE, gradient="dense", fixed=1e-8 * size, slope=0.0, bytes_fixed=400.0 * size)
    lazy = replace(maker.SPARSE, update="lazy", fixed=1e-4, slope=0.0, bytes_fixed=200.0 * size + 10e6)
    return replace(whole, bytes_slope=0.0), replace(lazy, bytes_slope=0.0)


def swept(sizes=SIZES, laws_at=laws, reading="hashed={}, slope=1.5", **known) -> list[dict]:
    """Rows at each size; all of them as the data has its density."""
    changes = [{"features": size, "reading": reading.format(size), **known} for size in sizes]
    return [
        row | {"density": None}
        for size, change in zip(sizes, changes, strict=True)
        for row in maker.sweep(laws_at(size), densities=(0.001,), noise=0.01, **change)
    ]
