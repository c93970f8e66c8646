"""Whether what a module saves is all that it computes with: the pattern of sparse weights beside their values."""

import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse

from workbench.bridges.contracts import Breach
from workbench.bridges.pytorch.library import torch
from workbench.bridges.table import ERROR

BOUNDARY = "state_dict -> module"


def check_saved(
    module: torch.nn.Module, make: Callable[[], torch.nn.Module], *inputs: Any, tolerance: float = 1e-6
) -> list[Breach]:
    """Whether a module that `make` gives computes the same of `inputs` once it has loaded what this one saves.

    A layer whose weight is sparse has values and where they stand. If only the values are parameters or buffers, a
    layer of the same sizes and another pattern loads them without a word and computes something else. `make` must draw
    anew what the module draws when it is made. The state goes through `torch.save` and `torch.load` in memory; both
    modules compute in evaluation mode, one result each, equal within `tolerance` of its largest magnitude.
    """
    other = make()
    try:
        other.load_state_dict(_through_a_file(module.state_dict()))
    except RuntimeError as error:
        lines = str(error).strip().splitlines()
        came = f"The state does not load: {lines[-1].strip()}"
        return [Breach("topology", BOUNDARY, ERROR, came, "a state that loads", "Make the module of the same sizes")]
    before, after = _result(module, inputs), _result(other, inputs)
    largest = float(before.abs().max()) if before.numel() else 0.0
    apart = float((before - after).abs().max()) if before.shape == after.shape and before.numel() else 0.0
    if before.shape == after.shape and apart <= tolerance * max(largest, 1e-30):
        return []
    beside = ", ".join(_beside(module)) or "nothing that is seen"
    came = f"The module that loaded the state gives something else, by up to {apart:.3g} of {largest:.3g}"
    advice = f"Register what it computes with as buffers; not in the state: {beside}"
    effect = "load_state_dict says nothing, and the model is another one"
    return [Breach("topology", BOUNDARY, ERROR, came, "the pattern saved with the values", advice, effect)]


def _through_a_file(state: Any) -> Any:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def _result(module: torch.nn.Module, inputs: tuple) -> torch.Tensor:
    was_training = module.training
    module.eval()
    with torch.no_grad():
        result = module(*inputs)
    module.train(was_training)
    return result.to_dense()


def _beside(module: torch.nn.Module) -> Iterator[str]:
    """Arrays that the module and its parts hold and do not save, with types and shapes."""
    saved = module.state_dict()
    for place, part in module.named_modules():
        for name, held in {**vars(part), **part._buffers}.items():
            path = f"{place}.{name}" if place else name
            is_array = isinstance(held, torch.Tensor | np.ndarray) or scipy.sparse.issparse(held)
            if is_array and path not in saved:
                yield f"{path} {str(held.dtype).removeprefix('torch.')} {list(held.shape)}"
