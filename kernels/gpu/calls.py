"""Validation of operands of CUDA implementations, as for the CPU; launchers receive contiguous arrays only."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernels import devices
from kernels.operands import KernelError, check_operands

if TYPE_CHECKING:
    from kernels.contract import Kernel


def checked(kernel: "Kernel") -> Callable:
    """Wrap the CUDA implementation by a validation of its operands, which must be on one device (KernelError,
    TypeError).

    A non-contiguous input is copied, and a non-contiguous output written through a copy.
    """
    raw, parsed = kernel.gpu, kernel.parsed
    if raw is None:
        raise KernelError(f"{kernel.name} has no CUDA implementation.")
    arrays = [place for place, (_, kind, _) in enumerate(parsed) if kind != "s"]
    written = [place for place in arrays if parsed[place][0] in kernel.writes]

    @functools.wraps(raw)
    def call(*args: Any) -> Any:
        if len(args) != len(parsed):
            raise KernelError(f"{kernel.name} takes {len(parsed)} arguments ({kernel.operands}), not {len(args)}.")
        device = devices.device_of(args[arrays[0]])
        check_operands(kernel, args, type(args[arrays[0]]))
        ready = list(args)
        for place in arrays:
            ready[place] = device.contiguous(args[place])
        result = raw(*ready)
        for place in written:
            if ready[place] is not args[place]:
                device.assign(args[place], ready[place])
        return result

    return call
