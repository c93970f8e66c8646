"""The command `train` by several trainers: what their process tells is shown, and it ends as that ends."""

import json
import sys

import pytest
from typer.testing import CliRunner

from benchmarks import commands as bench
from workbench.command import cli, exit_codes, training
from workbench.command.training import parse_cluster
from workbench.sweeps.run_folder import RunError

SETTINGS = ["--dataset", "uniform", "--rows", "200", "--features", "50", "--width", "4", "--batch-rows", "40"]
TELLS = """
import json, sys
request = json.loads(sys.stdin.readline())
for line in {lines!r}:
    print(line.replace("REQUEST", request["where"] + " " + str(request["trainers"])), flush=True)
"""


@pytest.fixture
def told(monkeypatch, here):
    """Lets the command be told these lines; gives its exit code and what it shows."""

    def run(lines: list[dict], *options: str) -> tuple[int, str]:
        program = TELLS.format(lines=[json.dumps(line) for line in lines])
        monkeypatch.setattr(training, "PROGRAM", (sys.executable, "-c", program))
        found = CliRunner().invoke(cli.app, ["train", *SETTINGS, *options])
        return found.exit_code, f"{found.output}{found.exception or ''}"

    return run


def steps(first: int, last: int) -> list[dict]:
    return [{"step": step, "loss": 1.0 / step, "seconds": 0.002, "steps_epoch": 2} for step in range(first, last + 1)]


DONE = {"done": {"losses": 1, "bytes_moved": 3 << 20, "qualities": {"accuracy": 0.5}, "without_x": 0.7}}


def test_epochs_a_loss_and_the_quality_are_shown(told):
    lines = [{"processes": ["REQUEST"]}, *steps(1, 3), {"lost": "local 2 was ended.", "from": 2}]
    lines += [{"without": "local 2 did not join."}, *steps(3, 4), DONE]
    code, shown = told(lines, "--trainers", "2")
    assert code == 0
    for words in (
        "on local:2 2",
        "local 2 was ended.",
        "All go on from step 2.",
        "Left out until the next loss: local 2 did not join.",
        "accuracy 0.5000; processes were lost once on the way",
        "Warning: the model is worse than always predicting the most frequent class (0.5000 against 0.7000).",
    ):
        assert words in " ".join(shown.split())
    rows = [line.split("│")[1:-1] for line in shown.splitlines() if line.startswith("│")]
    assert [[configuration.strip() for configuration in row] for row in rows[-2:]] == [
        ["1", "2", "0.7500", "2"],
        ["2", "2", "0.2917", "2"],
    ]


@pytest.mark.parametrize(
    ("last", "code", "words"),
    [
        ({"failed": "Trainer 1 failed: no such luck"}, 1, "Trainer 1 failed: no such luck"),
        ({"step": 1, "loss": 1.0, "seconds": 0.1, "steps_epoch": 9}, 1, "ended without a word; its logs are in"),
        ({"stopped": True}, 130, "Stopped. Start again with"),
    ],
)
def test_what_ends_otherwise_says_so(told, last, code, words):
    found, shown = told([last], "--cluster", "local:2")
    assert words in shown.replace("\n", " ")
    assert found == code


def test_places_are_said_before_anything_is_started(told):
    code, shown = told([], "--cluster", "ssh:n1,me@n2", "--dry-run")
    assert code == 0
    assert "me@n2: ssh -o BatchMode=yes" in shown
    assert shown.count("workbench.cluster.worker SCHEDULER") == 2
    assert "They reach this machine at " in shown


def test_an_address_goes_along_and_one_of_another_machine_is_refused(told):
    code, shown = told([], "--cluster", "ssh:n1", "--address", "203.0.113.77", "--dry-run")
    assert (code, "'203.0.113.77' is no address and no interface of this machine" in shown) == (1, True)
    code, shown = told([], "--cluster", "ssh:localhost", "--address", "127.0.0.1", "--dry-run")
    assert (code, "They reach this machine at 127.0.0.1; it has " in shown) == (0, True)


def test_there_are_as_many_trainers_as_processes_where_one_number_is_given():
    assert parse_cluster(None, 3) == ("local:3", 3)
    assert parse_cluster("ssh:a,b", 1) == ("ssh:a,b", 2)
    assert parse_cluster("slurm:4", 8) == ("slurm:4", 8)
    assert parse_cluster("tls://host:1", 1) == ("tls://host:1", 1)


def test_a_suite_whose_process_fails_is_a_failure_with_the_place_of_its_logs_and_no_defect(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "PROGRAM", (sys.executable, "-S", "-c", "raise SystemExit(3)"))
    with pytest.raises(RunError, match="status 3; its logs are in") as raised:
        bench.measure_cluster(tmp_path, tmp_path / "runs", "quick")
    assert exit_codes.status_of(raised.value) == exit_codes.FAILURE
