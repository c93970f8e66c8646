"""Compiling ahead: the cases are trainings that exist, one by one or all; nothing is compiled here."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from kernels.code_cache import CodeCache
from kernels.vector import gather
from workbench.command import cli, doctor, warming


@pytest.fixture
def warmed(monkeypatch):
    configurations = []
    monkeypatch.setattr(
        warming, "warm_kernels", lambda configuration: configurations.append(configuration) or {"seconds_compile": 1.5}
    )
    return configurations


def test_all_cases_are_trainings_in_float32_that_differ(warmed):
    came = CliRunner().invoke(cli.app, ["warm"])
    assert came.exit_code == 0, came.output
    assert {(configuration.model, configuration.dtype) for configuration in warmed} == {("logistic", "float32")}
    kinds = {(configuration.optimizer, configuration.format, configuration.execution) for configuration in warmed}
    ways = (("csr", "step"), ("csr", "epoch"), ("dense", "epoch"))
    assert kinds == {(name, *way) for name in ("adagrad", "adam", "sgd") for way in ways}
    assert "9 of 9: sgd-dense-epochs, 1.5 s" in came.output


def test_one_case_is_compiled_alone_and_an_unknown_one_lists_all(warmed):
    assert CliRunner().invoke(cli.app, ["warm", "adam-steps"]).exit_code == 0
    assert [(configuration.optimizer, configuration.execution) for configuration in warmed] == [("adam", "step")]
    with pytest.raises(warming.SpecError, match=r"Unknown case 'adam'.* Expected one of: adagrad-steps, adam-steps"):
        warming.warm(["adam"])


def test_the_doctor_advises_it_while_nothing_is_compiled(monkeypatch, tmp_path):
    monkeypatch.setattr(CodeCache, "cache_path", str(tmp_path))
    (finding,) = doctor._find_compiled_code()
    assert "'workbench warm'" in finding.advice
    (tmp_path / f"{gather.__name__}.adagrad_fused_0-0.py311.1.nbc").touch()
    (finding,) = doctor._find_compiled_code()
    assert finding.advice == ""


def test_configurations_are_compiled_in_as_many_processes_as_asked_for(monkeypatch):
    asked = []

    class Pool(ThreadPoolExecutor):
        """Threads in place of processes, which note what they are to do and fail, as compiling may."""

        def __init__(self, count, **_):
            asked.append(count)
            super().__init__(count)

        def submit(self, function, configuration):
            asked.append(function)
            return super().submit(lambda: 1 / 0)

    monkeypatch.setattr(warming, "ProcessPoolExecutor", Pool)
    assert warming.warm_together(["a", "b", "c"], most=2) >= 0
    assert asked == [2, *[warming.prepare_trial] * 3]


def test_a_trial_is_prepared_up_to_where_it_would_train_epochs(monkeypatch):
    came = []

    def answers(request):
        for stage in ("compiling", "preparing data", warming.MEASURING, "training", "over"):
            came.append((request["cell"]["format"], stage))
            yield {"stage": stage}

    monkeypatch.setattr(warming, "answers", answers)
    warming.prepare_trial(warming.Configuration(format="dense"))
    assert came == [("dense", stage) for stage in ("compiling", "preparing data", "measuring", "training")]
