"""What a session asks CuPy for, by a stand-in that notes it: streams, events, pinned memory, copies."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from kernels import devices
from kernels.sessions import CudaSession


class FakeStream:
    def __init__(self, cuda: "FakeCuda", name: str) -> None:
        self.cuda, self.name = cuda, name

    def __enter__(self) -> None:
        self.cuda.local.stream = self

    def __exit__(self, *rest) -> None:
        self.cuda.local.stream = self.cuda.null

    def wait_event(self, event: "FakeEvent") -> None:
        self.cuda.notes.append((self.name, "waits for", event.stream))


class FakeEvent:
    def __init__(self, cuda: "FakeCuda") -> None:
        self.cuda = cuda

    def record(self) -> None:
        self.stream = self.cuda.get_current_stream().name

    def synchronize(self) -> None:
        self.cuda.notes.append(("host", "waits for", self.stream))


class FakeCuda:
    """As much of `cupy.cuda` as a session touches."""

    def __init__(self) -> None:
        self.notes, self.local, self.null = [], threading.local(), FakeStream(self, "first")

    def Stream(self, non_blocking: bool) -> FakeStream:  # noqa: N802 - CuPy's name
        assert non_blocking
        return FakeStream(self, "second")

    def Event(self) -> FakeEvent:  # noqa: N802 - CuPy's name
        return FakeEvent(self)

    def get_current_stream(self) -> FakeStream:
        return getattr(self.local, "stream", self.null)

    def alloc_pinned_memory(self, nbytes: int) -> bytearray:
        self.notes.append(("pinned", nbytes))
        return bytearray(-(-nbytes // 512) * 512)


class FakeArray:
    """A device's array that notes copies into it."""

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda, self.data = cuda, self

    def copy_from_host_async(self, pointer: int, nbytes: int, stream: FakeStream) -> None:
        self.cuda.notes.append((stream.name, "copies", pointer, nbytes))


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    made = FakeCuda()
    fake = SimpleNamespace(cuda=made, get_default_memory_pool=lambda: None, empty=lambda shape, dtype: FakeArray(made))
    monkeypatch.setattr(devices, "cupy", lambda: fake)
    return made


def test_pinned_memory_has_the_shape_asked_for_and_is_copied_from_its_start(cuda: FakeCuda) -> None:
    session = CudaSession()
    pinned = session.pinned((3, 5), np.float64)
    assert (pinned.shape, pinned.dtype) == ((3, 5), np.float64)
    assert pinned.flags.writeable
    session.fill(FakeArray(cuda), pinned[1])
    assert cuda.notes == [("pinned", 120), ("first", "copies", pinned.ctypes.data + 40, 40)]


def test_nothing_is_asked_for_where_there_are_no_elements(cuda: FakeCuda) -> None:
    session = CudaSession()
    empty = session.pinned(0, np.int32)
    session.fill(FakeArray(cuda), empty)
    assert empty.shape == (0,)
    assert cuda.notes == []


def test_work_beside_is_of_the_second_stream_from_any_thread(cuda: FakeCuda) -> None:
    session, found = CudaSession(), []

    def load() -> None:
        pinned = session.pinned(2, np.float32)
        with session.second_stream() as work:
            session.wait_for(mark)
            session.fill(FakeArray(cuda), pinned)
        found.append(work)

    mark = session.mark()
    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    session.wait_for(found[0].marks["end"])
    session.until(mark)
    copies = [note[:2] for note in cuda.notes[2:3]]
    assert copies == [("second", "copies")]
    assert cuda.notes[1] == ("second", "waits for", "first")
    assert cuda.notes[3:] == [("first", "waits for", "second"), ("host", "waits for", "first")]


def test_a_copy_keeps_the_pinned_memory_that_it_reads(cuda: FakeCuda) -> None:
    session, array = CudaSession(), np.arange(6, dtype=np.int32).reshape(2, 3)[:, ::2]
    with session.second_stream() as work:
        session.copy(array, work)
    (pinned,) = work.host
    assert pinned.tolist() == array.tolist()
    assert cuda.notes == [("pinned", 16), ("second", "copies", pinned.ctypes.data, 16)]
