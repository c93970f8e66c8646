"""`workbench train --threads`: kernels and BLAS use so many, and afterwards what they used before."""

from kernels import threads
from tests.command.test_cli import run
from workbench.command import training
from workbench.sweeps import spec


def test_a_training_uses_the_threads_that_it_is_told(monkeypatch, here):
    seen, real = [], training.make_run
    monkeypatch.setattr(training, "make_run", lambda *given: seen.append(threads.get_threads()) or real(*given))
    before = threads.get_threads()
    small = ["--dataset", "uniform", "--rows", "60", "--features", "30", "--epochs", "1"]
    assert run("train", *small, "--threads", "1").exit_code == 0
    assert set(seen) == {1}
    assert threads.get_threads() == before
    refused = run("train", *small, "--threads", "9999")
    assert isinstance(refused.exception, spec.SpecError)
    assert "--threads: threads is 9999" in str(refused.exception)
