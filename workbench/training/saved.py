"""The state of a host training as named arrays, and back; `formats.save` writes them to a file.

`parameter:NAME` is each parameter. A parameter with a sparsity pattern is saved as a csr matrix, however it is stored.
`optimizer:KEY` is what the updater's state has, `dual` are the dual variables of dual ascent, one row per training
row, and `step` is the number of steps.

>>> import numpy as np
>>> from workbench import data, training
>>> made = data.load("uniform", rows=64, features=32, density=0.1, classes=3, seed=0)
>>> setup = training.Setup(model="pruned_mlp", model_options="hidden=8, pattern=set, every=2", batch_rows=16)
>>> one, other = (training.Run(setup, made.x, made.y, width=3) for _ in range(2))
>>> losses = [event.loss for epoch in range(2) for event in one.epoch(epoch)]
>>> _ = list(other.epoch(0))
>>> resumed = training.Run(setup, made.x, made.y, width=3)
>>> resumed.load_state_dict(other.state_dict())
>>> [event.loss for event in resumed.epoch(1)] == losses[4:]
True
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import formats
from workbench.models import Parameter
from workbench.models.patterns import Pattern, fixed
from workbench.training.dual_steps import DualSteps
from workbench.training.setup import SetupError

if TYPE_CHECKING:
    from workbench.training.run import Run


def state_dict(run: "Run") -> dict[str, Any]:
    """See `Run.state_dict`."""
    arrays = {f"parameter:{name}": array.copy() for name, array in run.arrays.items() if name not in run.patterned}
    arrays |= {f"parameter:{name}": one.pattern.matrix(one.values).copy() for name, one in run.patterned.items()}
    arrays |= {f"optimizer:{key}": array for key, array in run.updater.state_dict().items()}
    return arrays | _of_dual(run) | {"step": np.array([run.step])}


def load_state_dict(run: "Run", arrays: Mapping[str, Any]) -> None:
    """Load weights, states and step of a training from `arrays`; SetupError if names or shapes differ."""
    expected = {f"parameter:{parameter.name}" for parameter in run.parameters} | {"step"} | set(_of_dual(run))
    others = {name for name in arrays if not name.startswith("optimizer:")}
    if others != expected:
        raise SetupError(f"The state has {sorted(others)}; that of this training has {sorted(expected)}.")
    found = {
        parameter.name: _checked(run, parameter, arrays[f"parameter:{parameter.name}"]) for parameter in run.parameters
    }
    steps = run.updater.read_state(
        {name.removeprefix("optimizer:"): arrays[name] for name in arrays if name.startswith("optimizer:")}
    )
    run.updater.check_fit(steps, run.arrays)
    run.step = _step(arrays["step"])
    if "dual" in expected:
        run.calls.steps.restore(arrays)
    run.updater.take_state(steps)
    for name, (pattern, values) in found.items():
        if pattern is None:
            run.arrays[name][...] = values
        else:
            run.patterned[name].start(pattern, values)


def _of_dual(run: "Run") -> dict[str, np.ndarray]:
    """Return the state of dual ascent; nothing for other trainings."""
    steps = run.calls.steps if run.calls else None
    return steps.state() if isinstance(steps, DualSteps) else {}


def _step(array: Any) -> int:
    """Return the step count of a saved array; SetupError unless it is int64 [1], not negative."""
    if not isinstance(array, np.ndarray) or array.shape != (1,) or array.dtype != np.int64 or array[0] < 0:
        raise SetupError(f"The state says that step is {array!r:.80}; it should be a whole number from 0, int64 [1].")
    return int(array[0])


def _checked(run: "Run", parameter: Parameter, array: Any) -> tuple[Pattern | None, np.ndarray]:
    """Return (its pattern where it has one, its values), or `SetupError` with what came and what should."""
    kind = "csr" if parameter.matrix else "dense"
    format, array = formats.validate(array)
    came = f"{format.name} {array.dtype} {tuple(array.shape)}"
    wanted = f"{kind} {run.dtype} {parameter.matrix or parameter.shape}"
    if parameter.matrix and format.name == "dense" and came != wanted:
        wanted += ": values are saved with their places"
    elif came == wanted and (not parameter.matrix or array.nnz == parameter.shape[0]):
        return _parts(parameter, array) if parameter.matrix else (None, array)
    elif parameter.matrix:
        wanted, came = f"{wanted} of {parameter.shape[0]} entries", f"{came} of {array.nnz}"
    raise SetupError(f"The state has {parameter.name} as {came}; that of this training is {wanted}.")


def _parts(parameter: Parameter, matrix: Any) -> tuple[Pattern, np.ndarray]:
    """Return (pattern, values) of a saved sparse parameter; SetupError if columns are unsorted or duplicated."""
    pattern = fixed(matrix.indptr.copy(), matrix.indices.copy(), parameter.matrix)
    if (np.diff(pattern.keys) <= 0).any():
        raise SetupError(f"The state has {parameter.name} with columns unsorted or twice; call sum_duplicates().")
    return pattern, matrix.data
