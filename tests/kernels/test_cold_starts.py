"""First calls from several threads, and processes that were forked after parallel calls."""

import os
import textwrap
from pathlib import Path

import pytest

from kernels import threads
from tests.support.processes import printed

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "NUMBA_THREADING_LAYER"}
HEAD = """
import os, sys, threading
import numpy as np
import kernels
from kernels import threads
rng = np.random.default_rng(0)
scores, targets = rng.standard_normal((3000, 64)), rng.random((3000, 64))
indptr, indices = np.arange(0, 60001, 20), rng.integers(0, 500, 60000)
x, data = rng.standard_normal((500, 64)), rng.standard_normal(60000)

def logistic():
    slope = np.empty_like(scores)
    return kernels.get("logistic").cpu(scores, targets, slope), slope.tobytes()

def product():
    out = np.empty((3000, 64))
    kernels.get("csr_dense").cpu(indptr, indices, data, x, out)
    return out.tobytes()
"""


def run(code: str, before: str = "", **environment: str) -> list[str]:
    """What a fresh interpreter prints that runs `before`, `HEAD` and `code`; it must end well, and not hang."""
    code = f"{before}\n{HEAD}{textwrap.dedent(code)}"
    return printed(code, env={**ENVIRONMENT, "NUMBA_NUM_THREADS": "2", **environment}).splitlines()


@pytest.mark.skipif(os.cpu_count() < 2, reason="this machine has one core")
@pytest.mark.parametrize("layer", threads.available_layers())
def test_child_that_was_forked_after_parallel_calls_computes_the_same_bits(layer: str) -> None:
    """Also its other threads, and its own children; with GNU's OpenMP each of these ended by signal 15."""
    code = """
        first = logistic(), product()

        def again(who):
            assert (logistic(), product()) == first, who
            print(who, flush=True)

        def forked(work):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    work()
                    status = 0
                finally:
                    os._exit(status)
            assert os.waitpid(child, 0)[1] == 0

        def child():
            again("child")
            other = threading.Thread(target=again, args=("thread",))
            other.start(), other.join()
            forked(lambda: again("grandchild"))

        forked(child)
        again("parent")
    """
    assert run(code, NUMBA_THREADING_LAYER=layer) == ["child", "thread", "grandchild", "parent"]


@pytest.mark.skipif(threads.choose_layer() != "omp", reason="the threading layer is not OpenMP")
def test_child_that_was_forked_says_why_it_has_one_thread() -> None:
    code = """
        logistic()
        if os.fork() == 0:
            try: threads.set_threads(2)
            except ValueError as error: print(error, flush=True)
            print(threads.get_threads(), flush=True)
            os._exit(0)
        os.wait()
        threads.set_threads(2)
        print(threads.get_threads())
    """
    refusal, count, parent = run(code)
    assert refusal.startswith("threads is 2; this process can use 1 to 1. It was forked from a process that had run")
    assert 'multiprocessing.get_context("forkserver")' in refusal
    assert (count, parent) == ("1", "2")


def test_child_that_was_forked_before_any_parallel_call_has_all_threads() -> None:
    code = """
        if os.fork() == 0:
            logistic()
            print(threads.get_threads(), flush=True)
            os._exit(0)
        os.wait()
    """
    assert run(code) == ["2"]


@pytest.mark.covering(targets=lambda case: {case["before"], case["layer"]})
@pytest.mark.parametrize("before", ["", "import numba; numba.set_num_threads(1)"], ids=["first", "loaded before"])
@pytest.mark.parametrize("layer", threads.available_layers())
def test_parallel_calls_of_several_threads_do_not_end_the_process(layer: str, before: str) -> None:
    """Also in a process that was forked meanwhile; with the layer "workqueue" all of them ended by signal 6."""
    code = """
        expected = product(), logistic()

        def work():
            with threads.parallel():
                for _ in range(100):
                    assert (product(), logistic()) == expected
            print("done\\n", end="", flush=True)  # in one piece: threads print at once

        calls = [threading.Thread(target=work) for _ in range(4)]
        [thread.start() for thread in calls]
        child = os.fork() if threads.numba_internals.config.THREADING_LAYER == "workqueue" else os.getpid()
        if child == 0:
            work()
            os._exit(0)
        [thread.join() for thread in calls]
        if child != os.getpid():
            print(os.waitpid(child, 0)[1])
    """
    printed = run(code, before, NUMBA_THREADING_LAYER=layer)
    assert sorted(printed) == (["0"] + ["done"] * 5 if layer == "workqueue" else ["done"] * 4)


def test_first_calls_from_several_threads_compile_and_agree(tmp_path: Path) -> None:
    """With nothing compiled on disk, and all of them at one moment."""
    code = """
        start, results = threading.Barrier(4), []
        def call(one):
            start.wait()
            results.append(one())
        calls = [threading.Thread(target=call, args=(one,)) for one in (product, logistic) * 2]
        [thread.start() for thread in calls]; [thread.join() for thread in calls]
        print(len(results), len(set(results)), {product(), logistic()} == set(results))
    """
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == ["4 2 True"]


def test_epoch_that_is_the_first_to_compile_the_logistic_loss_lets_it_make_arrays(tmp_path: Path) -> None:
    """What an epoch calls was compiled as the epoch, without arrays, where nothing else had compiled it before."""
    code = """
        import numba
        from kernels.loss_blocks import block_of
        block, x = block_of("logistic"), np.zeros((2, 1), np.float32)

        @numba.njit(_nrt=False)
        def epoch(x, gradient):
            return block(x, x, gradient, x.dtype.type(1))

        print(round(epoch(x, x.copy())[0], 4))
    """
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == ["1.3863"]
