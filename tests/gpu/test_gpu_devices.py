"""What CuPy is asked for, by a stand-in that notes it: sources, options, arguments, copies, graphs."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from kernels import devices
from kernels.gpu.source import Source


class FakeArray:
    """As much of a CuPy array as the device touches."""

    def __init__(self, host: np.ndarray, notes: list) -> None:
        self.host, self.notes = host, notes
        self.size, self.dtype, self.shape = host.size, host.dtype, host.shape
        self.data = SimpleNamespace(ptr=host.ctypes.data)

    def fill(self, value):
        self.notes.append(("fill", value))
        self.host[...] = value


FakeArray.__module__ = "cupy"


class FakeStream:
    def __init__(self, notes: list) -> None:
        self.notes = notes

    def __enter__(self):
        self.notes.append("enter")

    def __exit__(self, *rest):
        self.notes.append("exit")

    def begin_capture(self):
        self.notes.append("begin")

    def end_capture(self):
        self.notes.append("end")
        return SimpleNamespace(launch=lambda stream: self.notes.append(("launch", stream)))


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list:
    noted: list = []

    class Module:
        def __init__(self, **given) -> None:
            noted.append(given)

        def get_function(self, name):
            return lambda grid, block, args: noted.append((name, grid, block, args))

    cuda = SimpleNamespace(Stream=lambda non_blocking: FakeStream(noted), get_current_stream=lambda: "current")
    fake = SimpleNamespace(RawModule=Module, cuda=cuda)
    monkeypatch.setattr(devices, "cupy", lambda: fake)
    monkeypatch.setattr(devices, "_devices", {})
    devices.compile_kernel.cache_clear()
    yield noted
    devices.compile_kernel.cache_clear()


@pytest.fixture
def source(tmp_path) -> Source:
    (tmp_path / "one.cu").write_text('#include "two.cuh"\nkernel\n', encoding="utf-8")
    (tmp_path / "two.cuh").write_text("#pragma once\nheader\n", encoding="utf-8")
    return Source(tmp_path / "one.cu", ("f<float>", "g"))


def test_a_kernel_is_compiled_once_from_its_whole_text_and_launched(notes: list, source: Source) -> None:
    device = devices.CupyDevice()
    array = FakeArray(np.zeros(3), notes)
    device.launch(source, "f<float>", 7, array, 5, True, np.float32(1.5))
    device.launch(source, "f<float>", 8, array)
    made, first, second = notes
    assert "header" in made["code"]
    assert "#include" not in made["code"]
    assert made["options"] == ("-std=c++17",)
    assert made["name_expressions"] == ("f<float>",)
    assert first[:3] == ("f<float>", (7,), (128,))
    assert first[3][0] is array
    assert [type(arg) for arg in first[3][1:]] == [np.int64, np.int32, np.float32]
    assert second[1] == (8,)


def test_a_kernel_that_no_launcher_named_is_refused(notes: list, source: Source) -> None:
    with pytest.raises(ValueError, match=r"one has no kernel 'h'; it has f<float>, g\."):
        devices.CupyDevice().launch(source, "h", 1)
    assert not notes


def test_work_is_captured_once_then_only_launched(notes: list) -> None:
    run = devices.CupyDevice().recorded(lambda: notes.append("work"))
    assert notes == []
    run()
    assert notes == ["enter", "begin", "work", "end", "exit", ("launch", "current")]
    run()
    assert notes[6:] == [("launch", "current")]


def test_an_array_is_cleared_where_it_is(notes: list) -> None:
    target = FakeArray(np.ones(5), notes)
    devices.CupyDevice().clear(target)
    assert not target.host.any()
    assert notes == [("fill", 0)]


def test_device_of_an_array_is_found_by_its_type(notes: list) -> None:
    one = devices.device_of(FakeArray(np.zeros(1), notes))
    assert isinstance(one, devices.CupyDevice)
    assert devices.device_of(FakeArray(np.zeros(1), notes)) is one
    with pytest.raises(TypeError, match=r"was given a numpy\.ndarray; pass CuPy arrays"):
        devices.device_of(np.zeros(1))


def test_without_cupy_the_install_line_is_told() -> None:
    if "cupy" in sys.modules or not devices.probe().reason.startswith("CuPy is not installed"):
        pytest.skip("CuPy is installed")
    with pytest.raises(ImportError, match="This needs CuPy: pip install"):
        devices.cupy()


def test_a_header_comes_once(tmp_path) -> None:
    for name, text in {
        "a.cu": '#include "b.cuh"\n#include "c.cuh"\n',
        "b.cuh": '#include "c.cuh"\n',
        "c.cuh": "once\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert Source(tmp_path / "a.cu", ()).text.count("once") == 1
