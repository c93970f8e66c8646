"""Compiling the common trainings into the cache ahead, so that the first `train` need not wait for it."""

import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, wait

from kernels import threads
from kernels.registry import unknown_name
from workbench.command.console import console
from workbench.command.training import configuration_of
from workbench.sweeps.spec import Configuration, Measure, SpecError
from workbench.sweeps.trial import MEASURING, answers, warm_kernels

OPTIMIZERS = ("adagrad", "adam", "sgd")
LARGEST = 2**62
"""Bytes that a trial may take which is only prepared: as many as it likes."""


CASES = {
    f"{optimizer}-{how}": {"model": "logistic", "dtype": "float32", "optimizer": optimizer, **settings}
    for how, settings in {
        "steps": {"format": "csr", "execution": "step"},
        "epochs": {"format": "csr", "execution": "epoch"},
        "dense-epochs": {"format": "dense", "execution": "epoch"},
    }.items()
    for optimizer in OPTIMIZERS
}
"""Settings of the common trainings, logistic regression in float32, by the name that is typed."""


def choose(names: Sequence[str]) -> list[str]:
    """Return the names of the cases meant, all for (); SpecError, with the nearest name, for an unknown one."""
    if unknown := [name for name in names if name not in CASES]:
        raise SpecError(unknown_name("case", unknown[0], CASES))
    return [*names] or [*CASES]


def warm(names: Sequence[str]) -> float:
    """Compile the cases of these names, or all, into the cache; print the seconds of each, return those of all."""
    cases, start = choose(names), time.perf_counter()
    for count, name in enumerate(cases, 1):
        with console.status(f"{count} of {len(cases)}: {name}"):
            seconds = warm_kernels(configuration_of(CASES[name]))["seconds_compile"]
        console.print(f"{count} of {len(cases)}: {name}, {seconds:.1f} s", highlight=False)
    return time.perf_counter() - start


def prepare_trial(configuration: Configuration) -> None:
    """Run a trial of the configuration with few samples, so that all its code is compiled; errors are ignored.

    Epochs are left out.
    """
    few = Measure(seconds_warmup=0.0, trial_seconds=0.0, samples_least=1)
    request = {"cell": configuration.model_dump(mode="json"), "measure": few.model_dump(), "bytes_limit": LARGEST}
    messages = answers(request)
    next((message for message in messages if message.get("stage") == MEASURING), None)
    next(messages, None)  # it takes the samples


def warm_together(configurations: Sequence[Configuration], most: int | None = None) -> float:
    """Compile the code of trials of configurations into the cache, in as many processes as there are cores.

    What cannot be compiled is left to the trial of that configuration, which says why.

    Parameters
    ----------
    configurations : sequence of Configuration
        Configurations, the longest first.
    most : int, optional
        Number of processes at most; by default the cores that this process may use.

    Returns
    -------
    float
        Seconds that it took.
    """
    start = time.perf_counter()
    count = max(int(min(len(configurations), most or min(threads.cores(), os.cpu_count() or 1))), 1)
    context = multiprocessing.get_context("spawn")
    ignore = (signal.SIGINT, signal.SIG_DFL)
    with ProcessPoolExecutor(count, mp_context=context, initializer=signal.signal, initargs=ignore) as pool:
        wait([pool.submit(prepare_trial, configuration) for configuration in configurations])
    return time.perf_counter() - start
