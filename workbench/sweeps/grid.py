"""Expansion of a spec's axes into configurations: every combination but the impossible ones, with reasons.

Dense ones twice.
"""

import importlib.util
import inspect
import itertools
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kernels.registry import format_size
from kernels.vector.tiles import cache_bytes
from workbench import data, formats, models, optimizers, settings
from workbench.measure import closure, memory
from workbench.sweeps.problem import (
    OF_FILE,
    Contents,
    Problem,
    columns_of_data,
    is_synthetic,
    missing_facts_reason,
    parameters_of_file,
)
from workbench.sweeps.spec import FILES, Configuration, InvalidOption, Spec, SpecError, source_hash
from workbench.training import Setup, impossible_reason
from workbench.training.setup import complete_settings

SCHEMA = 2
IN_CALLS = ("epoch", "dual")
"""Launches that make no copy of a batch."""


@dataclass
class Grid:
    """The configurations of a spec in a fixed order, how many combinations were dropped for which reason, and what was
    added."""

    configurations: list[Configuration] = field(default_factory=list)
    dropped: Counter = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def why_dropped(configuration: Configuration) -> str:
    """Return a sentence on why a combination of settings is invalid, "" if it is a valid configuration.

    Checks width, files, facts of the data and `why_not_together`; for several trainers also this machine's threads and
    Dask.
    """
    if configuration.width is not None and not models.get(configuration.model).allows(configuration.width):
        return f"The {configuration.model} model has {models.get(configuration.model).widths}."
    needed = [axis for axis in FILES if data.get(configuration.dataset).parameters.get(axis) is inspect.Parameter.empty]
    if missing := [axis for axis in needed if getattr(configuration, axis) is None]:
        return f"The data set {configuration.dataset} needs {missing[0]}, a file of yours."
    if reason := missing_facts_reason(models.get(configuration.model), configuration.dataset):
        return reason
    try:
        parameters_of_file(vars(configuration))
    except data.DataError as error:
        return str(error)
    if configuration.trainers > 1 and (reason := _why_not_here(configuration)):
        return reason
    return why_not_together(configuration)


def why_not_together(configuration: Configuration) -> str:
    """Return a sentence on why settings of a training exclude each other, whatever its data; "" if they do not."""
    setup = setup_of(configuration)
    if (
        configuration.execution == "cuda_graph"
    ):  # on cpu it means something, too, and gives a row that says what there is not
        setup = setup.changed(device="cuda")
    return impossible_reason(setup)


def _why_not_here(configuration: Configuration) -> str:
    """Return a sentence on why this machine cannot run the configuration's trainers (threads, MPI); "" if it can."""
    if configuration.trainers > threads_of(configuration):
        return f"{configuration.trainers} trainers need a thread each; there are {threads_of(configuration)}."
    if importlib.util.find_spec("mpi4py") is None:
        return "Several trainers need MPI: pip install 'sparse-workbench[mpi]'."
    return ""


def setup_of(configuration: Configuration) -> Setup:
    """Return the training setup of a configuration; without a set intercept, synthetic data has none."""
    fields = {name: getattr(configuration, name) for name in settings.names(goes_to="setup")}
    options = {name: getattr(configuration, name) for name in settings.names(goes_to="optimizer")}
    if configuration.intercept is None and is_synthetic(configuration.dataset):
        fields["intercept"] = False  # scores of drawn data have the mean zero
    return Setup(**fields, options={name: value for name, value in options.items() if value is not None})


def list_unread_settings(configuration: Configuration) -> list[str]:
    """Return the names of file settings and model options that are set, but not read by this data set or model."""
    parameters = data.get(configuration.dataset).parameters
    read = set(parameters) if is_synthetic(configuration.dataset) else {*parameters, "reading"}
    read |= {"model_options"} if models.get(configuration.model).options else set()
    return [
        name for name in (*OF_FILE, "model_options") if getattr(configuration, name) is not None and name not in read
    ]


def refuse_unread_settings(configuration: Configuration) -> None:
    """Raise SpecError if a setting of `list_unread_settings` is given."""
    for name in list_unread_settings(configuration):
        value = configuration.model_dump()[name]
        kind = "model" if name == "model_options" else "data set"
        reader = configuration.model if name == "model_options" else configuration.dataset
        raise SpecError(InvalidOption(f"the {kind} {reader} takes none; leave it out.", name, value))


def drop_unread_settings(configuration: Configuration) -> Configuration:
    """Return a copy of the configuration with the settings of `list_unread_settings` set to None."""
    return configuration.model_copy(update=dict.fromkeys(list_unread_settings(configuration)))


def predicted_bytes(
    configuration: Configuration,
    *,
    rows: int,
    features: int,
    nnz: int,
    width: int,
    facts: Mapping[str, Any],
    active: int,
    stored: bool,
) -> dict[str, int]:
    """Predict the bytes of each part of a training by formula, {part: bytes}; nothing is allocated.

    `rows`, `features`, `nnz` and `width` are sizes of the training data, `facts` those of `Problem.facts`, `active`
    the active columns of a batch; `stored` says that rows are read from disk while training. Parts are "data", "batch",
    parameters and states, and "graph" for what a model reads besides its rows.
    """
    model, optimizer = models.get(configuration.model), optimizers.get(configuration.optimizer)
    given, batch_rows = (
        model.given(features, width, configuration.model_options, facts),
        min(configuration.batch_rows, rows),
    )
    read = model.reads(given, batch_rows)
    whole = max(rows, read)
    parts = memory.predicted_training_bytes(
        rows=whole,
        features=features,
        nnz=nnz * whole // max(rows, 1),
        tables=[_table(one, configuration) for one in model.trained(given, setup_of(configuration).has_intercept)],
        active=active,
        states=len(optimizer.states),
        states_by_row=optimizer.states_by_row,
        batch_rows=read,
        shuffle=configuration.shuffle or stored,
        **{name: getattr(configuration, name) for name in ("format", "storage", "update", "dtype", "ahead")},
    )
    if configuration.execution in IN_CALLS:  # rows are read in place, or made dense a block at a time
        parts["batch"] = (
            0 if configuration.storage == "same" else min(parts["batch"], threads_of(configuration) * cache_bytes(2))
        )
    if configuration.execution == "dual":  # a number for each row and output, and the sum of squares of the row
        parts["dual"] = formats.predicted_bytes("dense", rows, width + 1, 0, configuration.dtype, "int32")
    if not model.rows_apart:  # batches are made of what the graph holds, whatever their format
        parts["data"] = formats.predicted_bytes("csr", rows, features, nnz, configuration.dtype, "int32")
    bytes_graph = given.nbytes
    for one in model.inputs(given, batch_rows):
        storage = "dense" if configuration.format == "dense" else one.format
        height, length = one.shape
        bytes_graph += formats.predicted_bytes(storage, height, length, one.nnz, configuration.dtype, "int32")
    return parts | {"graph": bytes_graph} if bytes_graph else parts


def _table(parameter: models.Parameter, configuration: Configuration) -> memory.Table:
    """Return the size of a parameter's table (rows, columns, bytes of its pattern), for the estimate of memory."""
    if parameter.matrix is None:
        columns = math.prod(parameter.shape[1:])
        return memory.Table(
            parameter.shape[0], columns, parameter.touched, parameter.gradient_format(configuration.gradient)
        )
    rows, columns = parameter.matrix
    bytes_pattern = 4 * (parameter.shape[0] + rows + 1)
    if parameter.is_masked(configuration.format):  # a truth value a place, and the places of the pattern as numbers
        bytes_pattern += rows * columns + 8 * parameter.shape[0]
        return memory.Table(rows, columns, parameter.touched, "dense", bytes_pattern=bytes_pattern)
    return memory.Table(
        parameter.shape[0], 1, parameter.touched, "dense", outputs=columns, bytes_pattern=2 * bytes_pattern
    )


def expand_grid(spec: Spec) -> Grid:
    """Return all combinations of axis values and candidates as configurations, each once, in a fixed order.

    Invalid combinations are counted by reason in `dropped`. Dense steps on several threads get a variant on one thread.
    """
    grid, seen = Grid(), set()
    for *values, candidate in itertools.product(*spec.axes.values(), spec.candidates or ({},)):
        chosen, notes = complete_settings(dict(zip(spec.axes, values, strict=True)) | candidate)
        grid.notes += [note for note in notes if note not in grid.notes]
        configuration = drop_unread_settings(Configuration(**chosen))
        if (
            configuration.execution == "epoch" and configuration.gradient == "fused"
        ):  # computed alike: one configuration, measured once
            configuration = configuration.model_copy(update={"gradient": "row_sparse"})
        if reason := why_dropped(configuration):
            grid.dropped[reason] += 1
            continue
        fresh = [one for one in (configuration, *one_thread_variants(configuration)) if one not in seen]
        grid.configurations += fresh
        seen.update(fresh)
    return grid


def one_thread_variants(configuration: Configuration) -> list[Configuration]:
    """Return [the same configuration on one thread] for dense steps on several CPU threads, else [].

    BLAS may be faster on one thread for small products.
    """
    is_alone = configuration.serial or threads_of(configuration) == 1
    are_steps = configuration.format == "dense" and configuration.execution == "step" and configuration.device == "cpu"
    return [configuration.model_copy(update={"serial": True})] if are_steps and not is_alone else []


def threads_of(configuration: Configuration) -> int:
    """Return the number of threads of a configuration's trials: its setting, else the cores of this process."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return configuration.threads or cores or 1


def configuration_key(configuration: Configuration, contents: Contents | None = None) -> str:
    """Return the hash (hex text) of settings, file contents, source code and library versions of a configuration.

    Records with the same key are interchangeable. `contents` reads the files, by default anew.
    """
    from workbench.measure import machine

    content = (contents or Contents()).of(configuration)
    parts = [
        SCHEMA,
        configuration.model_dump(mode="json"),
        source_hash(configuration),
        machine.describe_stack(),
        content,
    ]
    return closure.result_key(parts)


def describe_configuration(configuration: Configuration) -> str:
    """Return the settings of a configuration in one line, "dataset=uniform density=0.01 format=csr ...".

    Those always shown, and others that differ from their default.
    """
    described = [setting for setting in settings.SETTINGS if setting.is_shown]
    others = [setting for setting in settings.SETTINGS if not setting.is_shown]
    described += [setting for setting in others if getattr(configuration, setting.name) != setting.default]
    return " ".join(f"{setting.name}={getattr(configuration, setting.name)}" for setting in described)


# Prediction of a trial before it runs: seconds of a step by the sizes of a batch, bytes by formula.
#
# The coefficients of the seconds were fitted (Lawson and Hanson 1974, non-negative least squares of relative errors) on
# the 64 configurations of `results/amd-epyc-2-cores-4b22/bench-fair.jsonl`: 64 to 16,384 columns, 1 to 4,096 rows a
# batch, 1 to 64 outputs, 0.1 to 60 % density. With each configuration left out of such a fit in turn, the logarithm of
# its ratio dense / sparse, both in epochs, is off by a standard deviation of 0.38 (standard update) and 0.41 (lazy),
# 1.4 at most; for sparse steps one by one by 0.59. `posterior.Noise.predicted`, 0.7, allows for other machines and
# structure, which were not measured.

NOT_MEASURED = "The time was out before it was measured."


class _Cost(NamedTuple):
    """Seconds of a step, of each row, stored entry, product of an entry and an output, and weight that is stepped."""

    step: float
    row: float
    entry: float
    product: float
    weight: float
    made_dense: float = 0.0
    """Seconds of a stored entry that is made dense."""


DENSE = {
    ("epoch", "same"): _Cost(2.0e-7, 8.9e-8, 2.3e-10, 5.2e-11, 1.9e-10),
    ("epoch", "csr"): _Cost(2.8e-7, 9.6e-8, 1.0e-10, 5.9e-11, 1.9e-10, 1.7e-9),
    ("step", "same"): _Cost(6e-5, 1.9e-7, 7.9e-10, 5.0e-11, 2.6e-9),
    ("step", "csr"): _Cost(7e-5, 3.5e-7, 4.4e-10, 4.9e-11, 2.3e-9, 1.7e-9),
}
"""Dense candidates by execution and storage; their entries are all places of a batch."""
SPARSE = {
    ("epoch", "lazy"): _Cost(2.0e-7, 8.5e-8, 1.7e-9, 3.1e-10, 3.0e-9),
    ("epoch", "standard"): _Cost(1.7e-7, 9.0e-8, 1.7e-9, 3.2e-10, 4.5e-9),
    ("step", "lazy"): _Cost(2.3e-4, 2.6e-7, 3.8e-9, 3.2e-10, 5.9e-8),
}
"""Sparse candidates by execution and update; others are taken for the one that is alike in the execution."""


FACTORS = {
    "dense": _Cost(9.8e-6, 2.2e-7, 2.3e-9, 4.2e-12, 1.7e-9),
    "lazy": _Cost(1.6e-4, 3.7e-7, 1.9e-8, 0.0, 1.4e-9),
    "standard": _Cost(2.0e-4, 4.0e-7, 1.9e-8, 0.0, 8.4e-10),
}
"""Candidates, step by step, of models whose scores are no product of X and weights: dense, else by update.

Fitted in the same way on 40 settings of matrix factorization, bpr, factorization machines and embedding_mlp (300 and
5,000 columns, 64 and 512 rows a batch, widths 4 and 32, 2 cores). With each left out in turn, the logarithm of the
ratio dense / sparse is off by a standard deviation of 0.34, 0.76 at most.
"""


def seconds_of(configuration: Configuration, sizes: Mapping[str, Any]) -> float | None:
    """Predict the seconds of one step of a configuration; None if no formula exists for its device, execution or model.

    `sizes` has features, width, nnz_batch, touched and rows_trained, as `columns_of_data` gives them.
    """
    if not _has_formula(configuration) or not models.get(configuration.model).is_product:
        return None
    if configuration.format == "dense":
        cost = DENSE[configuration.execution, "same" if configuration.storage == "same" else "csr"]
    else:
        cost = SPARSE.get((configuration.execution, configuration.update)) or SPARSE[configuration.execution, "lazy"]
    return _seconds(configuration, sizes, cost, sizes["width"])


def _has_formula(configuration: Configuration) -> bool:
    """Return whether the coefficients apply: one trainer on the CPU, launched per epoch or kernel by kernel."""
    return (
        configuration.device == "cpu" and configuration.trainers == 1 and configuration.execution in ("epoch", "step")
    )


def rough_seconds_of(configuration: Configuration, sizes: Mapping[str, Any], problem: Problem) -> float | None:
    """Predict the seconds of one step of a model whose scores are no product of X and weights, from `FACTORS`.

    Outputs are the columns of the parameters with a row per feature; other parameters count as dense weights. `sizes`
    is as in `seconds_of`. None if no formula exists for the device or execution. For use if nothing was measured.
    """
    if not _has_formula(configuration):
        return None
    model = models.get(configuration.model)
    parameters = model.parameters(
        model.given(sizes["features"], problem.width, configuration.model_options, problem.facts)
    )
    is_whole = configuration.format == "dense"  # a matrix with a pattern is then dense, with a mask
    size = {one.name: math.prod(one.matrix if one.matrix and is_whole else one.shape) for one in parameters}
    active = sum(size[one.name] for one in parameters if one.touched) / max(sizes["features"], 1)
    others = sum(size[one.name] for one in parameters if not one.touched)
    cost = FACTORS["dense" if is_whole else "standard" if configuration.update == "standard" else "lazy"]
    product = DENSE["step", "same"].product
    return (
        _seconds(configuration, sizes, cost, active)
        + others * min(configuration.batch_rows, sizes["rows_trained"]) * product
    )


def _seconds(configuration: Configuration, sizes: Mapping[str, Any], cost: _Cost, outputs: float) -> float:
    """Predict the seconds of one step of the configuration for `outputs` outputs, by the coefficients `cost`.

    `sizes` has rows_trained, features, nnz_batch and touched.
    """
    rows = min(configuration.batch_rows, sizes["rows_trained"])
    states = 1 + len(optimizers.get(configuration.optimizer).states)
    if configuration.format == "dense":
        entries, weights = rows * sizes["features"], sizes["features"]
    else:
        entries, weights = sizes["nnz_batch"], sizes["touched"]
        if configuration.update == "standard":
            weights = max(weights, sizes["features"] / 10)  # other rows are stepped in one run over memory
    return (
        cost.step
        + cost.row * rows
        + entries * (cost.entry + cost.product * outputs)
        + cost.weight * weights * outputs * (states + 1) / 2
        + cost.made_dense * sizes["nnz_batch"]
    )


def planned_row(configuration: Configuration, problem: Problem, bytes_limit: float = math.inf) -> dict[str, Any]:
    """Return the record columns of a CPU configuration that was not measured: sizes, predicted seconds and bytes.

    `problem` is its data, of which one batch is made. The status is "memory" if its arrays need more than `bytes_limit`
    bytes, else "skipped".
    """
    from workbench.measure import machine

    sizes = columns_of_data(problem, configuration, setup_of(configuration))
    row = sizes | {"machine": machine.machine_id(), "seconds_predicted": seconds_of(configuration, sizes)}
    stored = isinstance(problem.x, data.StoredRows)
    parts = predicted_bytes(
        configuration,
        rows=problem.x.shape[0],
        features=problem.x.shape[1],
        nnz=problem.x.nnz,
        width=problem.width,
        facts=problem.facts,
        active=int(sizes["touched"]),
        stored=stored,
    )
    if stored:
        parts["data"] = data.StoredBatches(
            problem.x, problem.y, configuration.batch_rows, shuffle=configuration.shuffle
        ).nbytes
    row["bytes_predicted"] = needed = sum(parts.values())
    if needed > bytes_limit:
        return row | unfit(parts, "", bytes_limit) | {"status": "memory"}
    return row | {"status": "skipped", "reason": NOT_MEASURED}


def unfit(parts: Mapping[str, int], where: str, limit: float) -> dict[str, Any]:
    """Return the columns reason, bytes_needed and bytes_limit of a configuration that needs more than `limit` bytes.

    `parts` is {part: bytes}; `where` names the memory in the reason, such as "of device memory ", or is "".
    """
    needed, largest = sum(parts.values()), max(parts, key=lambda name: parts[name])
    part = f"{largest}: {format_size(parts[largest])}"
    reason = f"Needs {format_size(needed)} {where}({part}); the limit is {format_size(int(limit))}."
    return {"reason": reason, "bytes_needed": needed, "bytes_limit": int(limit)}
