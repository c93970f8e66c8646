"""What our GPU twins are compared with is declared everywhere, with the reason why it cannot run on a CPU."""

import contextlib
from types import SimpleNamespace

import pytest

import kernels
from benchmarks.competitors import torch_cuda
from kernels import devices
from kernels.vendor import cusparse
from tests.support.gpu_implementations import COMPETITORS


def test_the_competitors_of_the_suites_are_there() -> None:
    assert {competitor.name.split(".")[0] for competitor in COMPETITORS} == {
        *("cublas", "cublas_tf32", "cupyx", "cusparse", "cusparse_anew", "torch_cuda")
    }


@pytest.mark.parametrize("competitor", COMPETITORS, ids=lambda competitor: competitor.name)
def test_a_competitor_runs_on_no_cpu_and_says_why(competitor: kernels.Kernel) -> None:
    assert competitor.cpu is None
    assert competitor.unavailable
    assert competitor.competitor_of.split(".")[-1] == competitor.name.split(".")[1]
    assert competitor.operands == kernels.get(competitor.competitor_of).operands


class FakeEvent:
    def record(self):
        pass

    synchronize = record


@pytest.mark.parametrize(("operation", "asked"), [(0, [4, 6, 12]), (1, [4, 6])], ids=["A", "A.T"])
def test_cusparse_takes_the_fastest_of_the_algorithms_it_has(monkeypatch, operation: int, asked: list[int]) -> None:
    """It has no third one for A.T, and refuses to say how large a buffer that needs."""
    called: list[int] = []
    seconds = lambda start, end: {4: 3.0, 6: 1.0, 12: 2.0}[called[-1]]  # noqa: E731
    cuda = SimpleNamespace(Event=FakeEvent, get_elapsed_time=seconds)
    monkeypatch.setattr(devices, "cupy", lambda: SimpleNamespace(cuda=cuda))

    class Product:
        def __call__(self, algorithm: int) -> None:
            called.append(algorithm)

    product = Product()
    product.operation = operation
    assert cusparse._best(product) == 6
    assert list(dict.fromkeys(called)) == asked


class FakeTorch:
    """As much of PyTorch as its streams need, without `ExternalStream`, which makes another of the default one."""

    class OutOfMemoryError(RuntimeError):
        pass

    def __init__(self) -> None:
        self.entered: list = []
        self.cuda = SimpleNamespace(stream=self._stream, get_stream_from_external=lambda ptr: ("stream", ptr))

    @contextlib.contextmanager
    def _stream(self, stream):
        self.entered.append(stream)
        yield


@pytest.fixture
def torch(monkeypatch) -> FakeTorch:
    fake, current = FakeTorch(), SimpleNamespace(ptr=0)
    monkeypatch.setattr(torch_cuda, "pytorch", lambda: fake)
    cuda = SimpleNamespace(get_current_stream=lambda: current)
    monkeypatch.setattr(devices, "cupy", lambda: SimpleNamespace(cuda=cuda))
    fake.current = current
    return fake


def test_pytorch_works_in_the_stream_that_cupy_has_when_it_is_called(torch: FakeTorch) -> None:
    call = torch_cuda.in_stream(lambda: torch.entered.append("work"))
    call()
    torch.current.ptr = 7
    call()
    assert torch.entered == [("stream", 0), "work", ("stream", 7), "work"]


def test_memory_that_pytorch_lacks_is_a_memory_error(torch: FakeTorch) -> None:
    def work() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")

    with pytest.raises(MemoryError, match=r"Tried to allocate 20\.00 GiB"):
        torch_cuda.in_stream(work)()
