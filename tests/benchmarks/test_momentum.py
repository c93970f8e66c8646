"""The benchmark of momentum: PyTorch's grows with the steps, ours does not, and the table has a line for each."""

import pytest

from benchmarks import momentum
from benchmarks.shapes import BenchError

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("kept_threads")
TORCH, OURS, PLAIN = momentum.OPTIMIZERS


def test_records_tell_of_each_tenth_of_the_steps():
    records = list(momentum.steps(OURS, 20, rows=50, width=2, ids=4))
    assert [record["steps"] for record in records] == list(range(2, 21, 2))
    assert all(record["seconds_step"] > 0 and record["bytes_peak"] >= 0 for record in records)


def test_an_unknown_optimizer_is_refused_with_the_known_ones():
    with pytest.raises(BenchError, match=r"Expected one of: torch\.optim\.SGD"):
        list(momentum.steps("Rprop", 10, 10, 2, 2))


def test_the_table_has_a_line_for_each_optimizer_from_a_process_of_its_own(monkeypatch):
    asked = []

    def process(name, *sizes):
        asked.append(name)
        first, last = {"seconds_step": 1e-3, "bytes_peak": 0}, {"seconds_step": 5e-3, "bytes_peak": 2_000_000}
        return [first, last]

    monkeypatch.setattr(momentum, "_in_own_process", process)
    assert "| LazySGD | 1 | 5 | 2 MB |" in momentum.run(count=10)
    assert asked == [TORCH, OURS, PLAIN]


def test_a_process_that_fails_is_an_error():
    with pytest.raises(BenchError, match=r"Rprop ended with status 1: .*unknown|Unknown"):
        momentum._in_own_process("Rprop", 10, 10, 2, 2)
