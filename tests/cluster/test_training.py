"""Trainings by the ranks of an MPI job: the bits of ranks that are threads, whoever is killed and when."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest

pytest.importorskip("mpi4py", reason="needs MPI: the extra mpi")

from tests.support import shared_training as support
from tests.support.clocks import until
from tests.support.processes import is_gone
from workbench.cluster import training
from workbench.cluster.training import TrainingError, train
from workbench.sweeps.spec import Measure

SETTINGS = {**support.SETTINGS, "epochs": 2}


def why_no_ranks() -> str:
    """Why this machine starts no two ranks, as without a name of its own in the network; "" if it does."""
    command = [str(Path(sys.executable).parent / "mpiexec"), "-n", "2", sys.executable, "-c", "from mpi4py import MPI"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr[-300:] if done.returncode else ""


if reason := why_no_ranks():
    pytest.skip(f"MPI starts no ranks here: {reason}", allow_module_level=True)


def ranks_of(process: psutil.Process) -> list[psutil.Process]:
    """The ranks that a process has started."""
    children = [one for one in process.children(recursive=True) if one.status() != psutil.STATUS_ZOMBIE]
    return [one for one in children if "workbench.cluster.training" in one.cmdline() and "python" in one.name()]


def test_two_processes_have_the_bits_of_two_threads(tmp_path):
    support.on_threads(support.configuration(), 2, folder=str(tmp_path / "threads"))
    told: list[dict] = []
    answer = train(SETTINGS, 2, tmp_path / "processes", tell=told.append)
    assert [message["step"] for message in told if "step" in message] == list(range(1, 13))
    assert (answer["step"], answer["rows"], len(answer["bytes_grown"])) == (12, 33, 2)
    assert answer["qualities"]
    states = [support.saved_state(tmp_path / name) for name in ("threads", "processes")]
    assert support.same_bits(*states)


@pytest.mark.faults(2, 4)
def test_a_rank_that_is_killed_ends_all_and_the_same_training_goes_on(tmp_path, fault_seed):
    """Every second time ranks train copies of the weights between two synchronisations."""
    drawn, long = random.Random(fault_seed), {**SETTINGS, "epochs": 20}
    steps, options = 6 * long["epochs"], {"sync_every": 1 + fault_seed % 2 * drawn.randint(1, 4)}
    _, told = support.on_threads(support.configuration(epochs=20), 2, folder=str(tmp_path / "whole"), **options)
    job = training.job_of(long, 2, tmp_path / "run", steps_saved=drawn.randint(1, 5), **options)
    at, me = drawn.randint(1, steps // 3), psutil.Process()

    def train_until_killed() -> None:
        ranks: list[psutil.Process] = []
        for message in training.messages(job, tmp_path / "run"):
            if message.get("step", 0) >= at and not ranks:
                ranks = ranks_of(me)
                drawn.choice(ranks).kill()

    def is_lost() -> bool:
        """Whether a rank was killed before the training had ended, which a busy reader may learn too late."""
        try:
            train_until_killed()
        except TrainingError as error:
            return str(error).startswith("A rank was lost")
        shutil.rmtree(tmp_path / "run")
        return False

    assert any(is_lost() for _ in range(10))
    assert not ranks_of(me)
    resumed: list[dict] = []
    assert train(long, 2, tmp_path / "run", tell=resumed.append, **options)["step"] == steps
    losses = [message["loss"] for message in resumed if "step" in message]  # none after a kill at the very end
    assert losses[-1:] in ([], [told[-1]["loss"]])
    assert support.same_bits(support.saved_state(tmp_path / "run"), support.saved_state(tmp_path / "whole"))


def test_a_training_that_is_not_read_any_more_ends(tmp_path):
    job = training.job_of({**SETTINGS, "epochs": 10_000}, 2, tmp_path, steps_saved=0)
    with closing(training.messages(job, tmp_path)) as told:
        assert next(told)["step"] == 1
        ranks = ranks_of(psutil.Process())
        assert len(ranks) == 2
    until(lambda: all(is_gone(one.pid) for one in ranks))


def test_without_its_starter_no_process_stays(tmp_path):
    code = f"""
from workbench.cluster.training import train
settings = { {**SETTINGS, "epochs": 10_000} }
train(settings, 2, {str(tmp_path)!r}, tell=lambda told: print(told, flush=True), steps_saved=0)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as starter:
        assert "step" in starter.stdout.readline()
        ranks = ranks_of(psutil.Process(starter.pid))
        os.kill(starter.pid, signal.SIGKILL)
    assert len(ranks) == 2
    until(lambda: all(is_gone(one.pid) for one in ranks))


def test_an_error_of_a_rank_is_that_of_the_training(tmp_path):
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(TrainingError, match=r"Rank 0: .*manifest.json is damaged"):
        train(SETTINGS, 2, tmp_path)


def test_a_trial_by_several_trainers_has_the_columns_of_a_record():
    cell = support.configuration(trainers=2, threads=2).model_dump(mode="json")
    (row,) = training.answers({"cell": cell, "measure": Measure().model_dump(), "bytes_limit": 2**32})
    assert (row["status"], row["reason"]) == ("ok", "")
    assert row["error"] <= row["error_allowed"]
    assert row["bytes_peak"] > 0
    assert row["steps_timed"] == 11
    assert json.dumps(row)
