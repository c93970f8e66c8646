"""How many Python calls a small step makes: of a batch of 32 rows they take longer than its arithmetic."""

import sys
from collections import Counter
from itertools import islice

import numpy as np

from kernels import threads
from workbench import data
from workbench.executor import program
from workbench.training import Setup, make_run

ROOTS = ("kernels", "workbench")


def calls_of(work) -> Counter:
    """Calls of Python functions of the project, by file and function."""
    calls: Counter = Counter()

    def count(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.split(".")[0] in ROOTS:
            calls[module, frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_a_step_of_csr_makes_few_calls_and_looks_up_no_kernel():
    drawn = data.load("uniform", rows=1024, features=300, density=0.05, cache=False)
    y = np.float32(drawn.y)[:, None]
    names = {"model": "logistic", "optimizer": "adagrad", "format": "csr", "gradient": "fused", "update": "lazy"}
    setup = Setup(**names, batch_rows=32, intercept=False)
    run = make_run(setup, drawn.x, y, 1)
    with threads.serial():
        events = run.events(3)
        list(islice(events, 4))
        calls = calls_of(lambda: list(islice(events, 20)))  # of 32 steps, whose batches are made together
    by_name = Counter(name for _, name in calls.elements())
    assert by_name["do_step"] == 20, "the check can fail"
    assert calls["kernels.registry", "get"] == 0
    assert by_name["scale_in_place"] == 0, "the head of the loss is one"
    assert sum(calls.values()) <= 62 * 20
    assert len({module for module, _ in calls}) <= 16
    with_batches = calls_of(lambda: list(islice(events, 32)))  # of which some are made and planned
    assert sum(calls.values()) / 20 < sum(with_batches.values()) / 32 <= 80
    assert not any(step.call is program.scale_in_place for step in run.executor.backward_steps)


def test_the_smaller_batch_at_the_end_of_an_epoch_makes_no_more_heads():
    drawn = data.load("uniform", rows=80, features=300, density=0.05, cache=False)
    setup = Setup(
        model="logistic", optimizer="adagrad", format="csr", update="standard", gradient="dense", batch_rows=50
    )
    run = make_run(setup, drawn.x, np.float32(drawn.y)[:, None], 1)
    with threads.serial():
        events = run.events(9)
        losses = [event.loss for event in islice(events, 6)]
        calls = calls_of(lambda: losses.extend(event.loss for event in islice(events, 10)))
    by_name = Counter(name for _, name in calls.elements())
    assert (by_name["do_step"], by_name["_take_ones"], by_name["head_array"]) == (10, 10, 0)
    assert len(run.executor.programs) == 2
