"""The command `train` by several trainers: what rank 0 reports is shown, and it ends as the training ends."""

import pytest
from typer.testing import CliRunner

from workbench.cluster import training
from workbench.cluster.training import TrainingError
from workbench.command import cli, exit_codes

SETTINGS = ["--dataset", "uniform", "--rows", "200", "--features", "50", "--width", "4", "--batch-rows", "40"]


@pytest.fixture
def told(monkeypatch, here):
    """Lets the command be told these messages, and an error in the end; gives its exit code and what it shows."""

    def run(messages: list[dict], error: Exception | None, *options: str) -> tuple[int, str]:
        def report(*_):
            yield from messages
            if error is not None:
                raise error

        monkeypatch.setattr(training, "messages", report)
        found = CliRunner().invoke(cli.app, ["train", *SETTINGS, *options])
        code = found.exit_code if not isinstance(found.exception, ValueError) else exit_codes.status_of(found.exception)
        return code, f"{found.output}{found.exception or ''}"

    return run


def steps(first: int, last: int) -> list[dict]:
    return [{"step": step, "loss": 1.0 / step, "seconds": 0.002, "steps_epoch": 2} for step in range(first, last + 1)]


DONE = {"done": {"bytes_moved": 3 << 20, "qualities": {"accuracy": 0.5}, "without_x": 0.7}}


def test_epochs_a_loss_and_the_quality_are_shown(told):
    code, shown = told([*steps(1, 4), DONE], None, "--trainers", "2")
    assert code == 0
    for words in (
        "accuracy 0.5000",
        "Warning: the model is worse than always predicting the most frequent class (0.5000 against 0.7000).",
        "rank 0 sent and received 3.15 MB; checkpoints and log: runs/train",
    ):
        assert words in " ".join(shown.split())
    rows = [line.split("│")[1:-1] for line in shown.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in row] for row in rows[-2:]] == [
        ["1", "2", "0.7500", "2"],
        ["2", "2", "0.2917", "2"],
    ]


def test_an_error_of_a_rank_is_shown(told):
    code, shown = told(steps(1, 1), TrainingError("Rank 1: no such luck"), "--trainers", "2")
    assert "Rank 1: no such luck" in shown
    assert code == exit_codes.WRONG_INPUT


def test_the_commands_for_other_machines_are_printed(told, monkeypatch):
    monkeypatch.setattr(training.shutil, "which", lambda name: "/usr/bin/mpiexec")
    code, shown = told([], AssertionError("started"), "--trainers", "2", "--dry-run")
    assert code == 0
    here, hosts, slurm = shown.splitlines()[-3:]
    assert "mpiexec -n 2 " in here
    assert hosts.startswith("on hosts: mpiexec -n 2 -hosts HOST,HOST ")
    assert slurm.startswith("in SLURM: srun -n 2 --mpi=pmi2 ")
    assert all("-m workbench.cluster.training" in line for line in (here, hosts, slurm))


def test_the_batches_between_two_synchronisations_are_those_of_the_job(told):
    code, shown = told([], None, "--trainers", "2", "--sync-every", "4", "--optimizer", "sgd", "--dry-run")
    assert (code, '"sync_every": 4' in shown) == (0, True)
    code, shown = told([], None, "--sync-every", "4")
    assert (code, "Give --trainers." in " ".join(shown.replace("│", "").split())) == (exit_codes.WRONG_INPUT, True)


def test_without_mpi_it_says_what_to_install(told, monkeypatch):
    monkeypatch.setattr(training.shutil, "which", lambda name: None)
    monkeypatch.setattr(training.sys, "executable", "/nowhere/python")
    code, shown = told([], None, "--trainers", "2", "--dry-run")
    assert (code, "pip install 'sparse-workbench[mpi]'" in shown) == (exit_codes.WRONG_INPUT, True)
