"""Completion of how to compute, where it is not said: engine, gradient and update that suit the given settings.

>>> complete_settings({"format": "row_sparse"})[1]
('format = row_sparse: engine ours, gradient dense, update standard completed',)
>>> complete_settings({"format": "csr"})
({'format': 'csr', 'engine': 'ours', 'gradient': 'row_sparse', 'update': 'lazy'}, ())
"""

import functools
import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench import settings as table
from workbench.ops import products
from workbench.training.setup import Setup, impossible_reason

COMPLETED = ("engine", "gradient", "update")
"""Settings that are completed, in the order in which they are chosen."""

DECIDING = ("format", "device", "launch", "model", "intercept")
"""Settings that are never completed, on which it depends what suits."""

USUAL = {name: table.BY_NAME[name].default for name in (*COMPLETED, *DECIDING)}


def complete_settings(settings: Mapping[str, Any], fastest: bool = False) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the settings with engine, gradient and update where they have none, and a note where those are not the
    usual.

    The usual ones are the defaults of `Setup`; where they mean nothing with what is given, or with `fastest`, the first
    that do are taken: the format's own engine, then a gradient of the active rows, then a lazy update. Where nothing
    suits, the engine alone is added: whoever checks the settings says why.
    """
    deciding = tuple(settings.get(name, USUAL[name]) for name in DECIDING)
    given = tuple(settings.get(name) for name in COMPLETED)
    chosen = _choose_settings(deciding, given, fastest)
    if chosen is None:
        return {"engine": products.default_engine(deciding[0]), **settings}, ()
    added = {name: value for name, value in zip(COMPLETED, chosen, strict=True) if settings.get(name) is None}
    is_usual = fastest or all(value == USUAL[name] for name, value in added.items())
    named = ", ".join(
        f"{name} = {settings[name]}" for name in (*DECIDING, *COMPLETED) if settings.get(name) is not None
    )
    what = ", ".join(f"{name} {value}" for name, value in added.items())
    return {**settings, **added}, () if is_usual else (f"{named}: {what} completed",)


def with_epoch_calls(setup: Setup) -> Setup:
    """Return the setup with epochs in one call where that is possible and batches are new each epoch, else the setup
    itself.

    >>> with_epoch_calls(Setup(update="lazy")).launch, with_epoch_calls(Setup(format="coo")).launch
    ('epoch', 'kernels')
    """
    calls = replace(setup, launch="epoch", gradient="dense" if setup.format == "dense" else "row_sparse")
    return calls if setup.launch == "kernels" and setup.shuffle and not impossible_reason(calls) else setup


@functools.lru_cache
def _choose_settings(deciding: tuple, given: tuple, fastest: bool) -> tuple | None:
    """Engine, gradient and update: those given, the first that suit for the rest; None if nothing does."""
    setup = Setup(**dict(zip(DECIDING, deciding, strict=True)))
    if setup.launch == "graph":  # on cpu it means something, too, and gives a row that says what there is not
        setup = replace(setup, device="cuda")
    if setup.launch == "dual":  # the others that it asks for are said by whoever checks the settings
        setup = replace(setup, optimizer="sgd", options={"decay": 1.0})
    own = products.default_engine(setup.format)
    engines = (own, *(engine for engine in products.ENGINES if engine != own))
    usual = tuple(value or USUAL[name] for name, value in zip(COMPLETED, given, strict=True))
    gradients = _gradients(given, fastest and setup.launch != "epoch")  # an epoch is fused whatever it is called
    candidates = itertools.product(engines, gradients, ("lazy", *table.BY_NAME["update"].allowed))
    for chosen in candidates if fastest else (usual, *candidates):
        is_as_given = all(value in (None, choice) for value, choice in zip(given, chosen, strict=True))
        if is_as_given and not impossible_reason(replace(setup, **dict(zip(COMPLETED, chosen, strict=True)))):
            return chosen
    return None


def _gradients(given: tuple, fastest: bool) -> tuple[str, ...]:
    """Return the gradients in the order to try: to an update of all rows a dense one costs least."""
    update = given[COMPLETED.index("update")]
    if update == "standard":
        return ("dense", *table.BY_NAME["gradient"].allowed)
    return ("fused", "row_sparse", "dense") if fastest else ("row_sparse", "fused", "dense")
