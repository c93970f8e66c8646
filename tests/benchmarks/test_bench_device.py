"""The benchmark on a device: candidates on the host emulator, the clock by events that a fake device's work moves."""

import dataclasses

import pytest

import kernels
from benchmarks import compare, configurations, device, kernel_suites, tables
from benchmarks.configurations import BenchmarkConfiguration
from benchmarks.device import CopyLimit, Events, OnDevice, copy_rate
from benchmarks.harness import Run
from benchmarks.kernel_suites import FUSED, configurations_of
from benchmarks.shapes import BenchError, draw_batch
from kernels import devices
from tests.benchmarks.test_bench import TINY, measure


class FakeCupy:
    """A device whose clock is moved by what is launched; a stream that does nothing else. `log` has what was asked."""

    def __init__(self) -> None:
        self.milliseconds, self.log = 0.0, []
        self.cuda = self

    class _Event:
        def __init__(self, device: "FakeCupy") -> None:
            self.device = device

        def record(self) -> None:
            self.at = self.device.milliseconds

        def synchronize(self) -> None:
            self.device.log.append("wait")

    def Event(self) -> "FakeCupy._Event":  # noqa: N802 - CuPy's name
        return self._Event(self)

    def get_elapsed_time(self, first, last) -> float:
        return last.at - first.at

    def RawKernel(self, code: str, name: str):  # noqa: N802 - CuPy's name
        assert f"void {name}(" in code
        return lambda grid, block, args: self.work(name, args[0] / 1e6)

    def empty(self, size: int, dtype: str):
        return FakeArray(self, size)

    zeros = empty

    def work(self, name: str, milliseconds: float) -> None:
        self.log.append(name)
        self.milliseconds += milliseconds


class FakeArray:
    def __init__(self, device: FakeCupy, size: int) -> None:
        self.device, self.size, self.data = device, size, self

    def fill(self, value: int) -> None:
        self.device.work("flush", 1.0)

    def copy_from_device_async(self, source: "FakeArray", size: int) -> None:
        assert source.size == size == self.size
        self.device.work("copy", 2.0)


def test_a_warm_call_is_timed_without_what_keeps_the_device_busy():
    cupy = FakeCupy()
    seconds = Events("warm", 60 * 10**6, cupy)(lambda: cupy.work("call", 0.25), 7)
    assert seconds == pytest.approx(0.25e-3)
    assert cupy.log == ["call", "hold", *["call"] * 7, "wait"]


def test_many_calls_are_asked_for_in_parts(monkeypatch):
    monkeypatch.setattr(device, "MOST_CALLS", 3)
    cupy = FakeCupy()
    assert Events("warm", 0, cupy)(lambda: cupy.work("call", 0.5), 7) == pytest.approx(0.5e-3)
    assert cupy.log.count("hold") == cupy.log.count("wait") == 3


def test_a_cold_call_follows_a_write_of_more_than_the_cache_that_is_not_timed():
    cupy = FakeCupy()
    timer = Events("cold", 200 * 2**20, cupy)
    assert timer.buffer.size == 400 * 2**20
    assert timer(lambda: cupy.work("call", 0.25), 3) == pytest.approx(0.25e-3)
    assert cupy.log == [*["flush", "call"] * 3, "wait"]


def test_the_bound_is_what_a_copy_of_the_device_allows():
    rate = copy_rate(10**6, FakeCupy())
    assert rate == pytest.approx(2 * 10**6 / 2e-3)
    assert CopyLimit(rate).bound(bytes_compulsory=rate, bytes_gather=0, bytes_row=4) == (1.0, "stream")


@pytest.fixture(scope="module")
def emulator():
    from tests.support.emulated_session import EmulatedSession
    from tests.support.emulator.device import emulator

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configurations, "CudaSession", lambda: EmulatedSession(emulator))
        yield emulator


def rows_of(configuration: BenchmarkConfiguration, on) -> dict[str, dict]:
    timer = OnDevice(lambda call, count: [call() for _ in range(count)] and 1e-3, lambda: None)
    return measure(configurations.field_of(configuration, on), 2**34, CopyLimit(1e12), timer)


def on_cuda(task: str, width: int = 4, **more) -> BenchmarkConfiguration:
    shape = dataclasses.replace(TINY, values=more.pop("values", "normal"))
    return BenchmarkConfiguration("kernels", task, shape, width, device="cuda",
                cache="warm", **more)  # fmt: skip


SOME = ("csr_dense", "csr_t_dense", "sddmm", "softmax", "adagrad_fused", "adagrad_lazy", "plan", "slice_rows",
        "coo_to_csr", "merge_rows", "take_rows")  # fmt: skip
"""One of each kind; every twin's result is compared in test_gpu_emulated.py."""


@pytest.mark.parametrize("task", SOME)
def test_our_twins_are_judged_right_and_have_a_bound(task, emulator):
    for name, row in rows_of(on_cuda(task), emulator).items():
        if row["side"] == "project":
            assert (row["status"], row["reason"]) == ("ok", ""), name
            assert row["seconds_bound"] > 0
            assert row["seconds_host"] > 0
        elif row["status"] != "ok":
            assert row["status"] == "unsupported"
            assert row["reason"].startswith("Unavailable because ")


def test_a_wrong_twin_is_judged_wrong(emulator):
    kernel = kernels.get("csr_dense")
    setting = configurations.Setting.of(draw_batch(TINY).wide(4))
    ready = device._ready(kernel, emulator, setting)
    returned = ready.call()
    assert ready.judge(returned) < 1e-6
    out = ready.call.args[-1]
    emulator.assign(out, emulator.zeros(out.shape, out.dtype))
    assert ready.judge(None) > 0.5


def test_competitors_of_the_device_are_listed_with_why_they_are_missing():
    names = {name: (side, why) for name, side, why in configurations.names_of(on_cuda("csr_dense", values="ones"))}
    assert list(names)[:2] == ["csr_dense", "csr_dense_ones"]
    assert {names[f"csr_dense, {way}"] for way in ("lengths known", "float16 x", "bfloat16 x")} == {("project", "")}
    for name in ("cusparse.csr_dense", "cusparse_anew.csr_dense", "cupyx.csr_dense", "torch_cuda.csr_dense",
                 "torch_cuda.csr_dense_ones", "cublas.dense_dense", "cublas_tf32.dense_dense"):  # fmt: skip
        side, why = names[name]
        assert side == "competitor"
        assert "runs on CUDA devices alone" not in why
    assert not any(name.startswith(("scipy", "blas.", "tensorflow")) for name in names)


@pytest.mark.parametrize(("optimizer", "batches"), [("adagrad", "repeat"), ("adagrad", "new"), ("adam", "new")])
def test_steps_on_the_device_train_as_defined(optimizer, batches, emulator):
    configuration = BenchmarkConfiguration("step", "step", TINY, 4, optimizer, batches, device="cuda")
    rows = rows_of(configuration, emulator)
    assert [rows[name]["status"] for name in ("ours, graph", "ours, kernels")] == ["ok", "ok"], rows
    assert rows["torch_cuda EmbeddingBag"]["status"] == "unsupported"


def test_suites_of_the_device_name_both_caches_and_no_unknown_device():
    found = configurations_of("kernels", True, "csr_dense", on="cuda")
    assert {configuration.cache for configuration in found} == {"warm", "cold"}
    assert {configuration.device for configuration in found} == {"cuda"}
    assert "on cuda cold" in next(configuration.name for configuration in found if configuration.cache == "cold")
    assert {configuration.shape.rows for configuration in configurations_of("step", True, on="cuda")} == {
        256,
        4096,
        65_536,
    }
    with pytest.raises(BenchError, match=r"Unknown device of the suite \w+ 'tpu'.*Expected one of: cpu, cuda"):
        configurations_of("kernels", on="tpu")


def test_without_a_gpu_there_is_one_clear_message_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "probe", lambda: devices.Gpu(reason="no CUDA device: cudaErrorNoDevice"))
    run = Run(tables.KERNELS, tmp_path / "run")
    with pytest.raises(BenchError, match=r"needs a CUDA device; there is none: cudaErrorNoDevice\. Take"):
        run.collect(kernel_suites.measure_kernels(run, device="cuda"))
    assert not list(tmp_path.glob("run/*.jsonl"))


def device_rows(ratios: dict[str, float], **known) -> list[dict]:
    """Records of a configuration: ours first, competitors whose time by ours is given."""
    shared = {"suite": "kernels", "task": "csr_dense", "shape": "s", "rows": 65_536, "features": 10**6}
    shared |= {"width": 16, "device": "cuda", "cache": "warm", "status": "ok", "threads": 2, "machine": "m"}
    shared |= known
    named = ("task", "rows", "features", "width", "cache")
    shared["case"] = shared["key"] = " ".join(str(shared[name]) for name in named)
    return [
        tables.KERNELS.new_row(
            candidate=name, side="competitor" if "." in name else "project", seconds=ratio * 1e-5,
            samples=[ratio * 1e-5] * 5, bound_share=0.7 / ratio, bound_by="stream", **shared,
        )
        for name, ratio in ratios.items()
    ]  # fmt: skip


def test_targets_of_the_device_are_told_apart_from_those_of_the_cpu():
    ratios = {"csr_dense": 1.0, "cusparse.csr_dense": 2.5, "cusparse_anew.csr_dense": 9.0, "cupyx.csr_dense": 5.0}
    rows = device_rows(ratios) + device_rows({"csr_dense": 1.0}, cache="cold")
    found = {one.what: one for one in kernel_suites.list_targets(compare.newest(rows))}
    assert not any("SciPy" in what or "MKL" in what for what in found)
    of = lambda words: next(target for what, target in found.items() if words in what)  # noqa: E731
    assert (of("against cuSPARSE").measured, of("against cuSPARSE").met) == ("2.5 over 1 case", True)
    assert of("at N ≤ 32").met is True
    assert of("against cupyx").met is False
    assert (of("share of the bound").measured, of("share of the bound").met) == ("70 % (csr_dense)", True)
    both = compare.newest(rows + device_rows({"csr_dense": 1.0}, device="cpu", cache=None))
    assert any("SciPy" in one.what for one in kernel_suites.list_targets(both))


def test_the_target_of_the_fused_update_is_of_one_size_and_of_warm_caches():
    sizes, rows = {"task": "adagrad_fused"} | dict(zip(("rows", "features", "width"), FUSED, strict=True)), []
    for ratio, more in ((7.0, {}), (2.0, {"cache": "cold"}), (2.0, {"width": 16}), (2.0, {"features": 100_000})):
        rows += device_rows({"adagrad_fused": 1.0, "torch_cuda.adagrad_fused": ratio}, **sizes | more)
    (target,) = (one for one in kernel_suites.list_targets(compare.newest(rows)) if "lazy AdaGrad" in one.what)
    assert (target.wanted, target.measured, target.met) == ("≥ 6", "7 over 1 case", True)
    found = configurations_of("kernels", True, "adagrad_fused", on="cuda")
    assert FUSED in {(one.shape.rows, one.shape.features, one.width) for one in found}


def test_device_memory_that_runs_out_is_a_record_with_the_bytes_asked_for():
    def full():
        raise MemoryError("Out of memory allocating 4,294,967,296 bytes (allocated so far: 0 bytes).")

    entries = [configurations.Entry("a", "project", full)]
    (row,) = measure(configurations.Field(entries, {}, 1e-3), 2**40).values()
    assert (row["status"], row["bytes_needed"]) == ("memory", 2**32)
