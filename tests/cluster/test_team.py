"""Trainers in processes: what they train, what is told when one fails or does not start; a loss changes no bit."""

import json
import os
import random
import shutil
import socket
import subprocess
import sys

import pytest

from tests.support import shared_training as support
from tests.support.clocks import SECONDS
from workbench.cluster.dask_hosts import Process
from workbench.kvstore import StoreError
from workbench.sweeps import agent_commands
from workbench.sweeps.agent_commands import AgentCommand

pytest.importorskip("distributed")

from distributed import Client

from workbench import store
from workbench.cluster import dask_hosts, training, worker
from workbench.cluster.dask_hosts import Hosts
from workbench.cluster.team import Team, TeamError
from workbench.cluster.trainer import Job
from workbench.sweeps.spec import Measure

HELPERS = "tests.support.shared_training"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The states after the training without losses, by their number of trainers, on threads."""
    folders = {trainers: tmp_path_factory.mktemp("alone") for trainers in (1, 2)}
    for trainers, folder in folders.items():
        support.on_threads(support.configuration(), trainers, 2, folder=str(folder))
    return {trainers: support.saved_state(folder) for trainers, folder in folders.items()}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Two processes; none is lost for being slow."""
    with Hosts("local:2", tmp_path_factory.mktemp("hosts"), seconds_silent=2 * SECONDS) as made:
        yield made


def team(hosts, folder, messages: list, work: str = "", trainers: int = 2) -> Team:
    folder.mkdir(exist_ok=True)
    job = Job(support.configuration().model_dump(mode="json"), trainers, str(folder), steps_saved=3, threads=1)
    return Team(hosts, job, None, messages.append, *([f"{HELPERS}:{work}"] if work else []))


def test_processes_train_what_one_process_trains_and_tell_every_step(hosts, tmp_path, undisturbed):
    result: list[dict] = []
    made = team(hosts, tmp_path, result)
    answer = made.run()
    assert sorted(made.grown) == [0, 1]  # told with the steps, so known of a training that is stopped, too
    assert support.support.same_bits(support.saved_state(tmp_path), undisturbed[2])
    assert [said["step"] for said in result if "step" in said] == list(range(1, 13))
    assert (answer["losses"], answer["rows"]) == (0, 33)
    assert answer["qualities"]["accuracy"] > 0


@pytest.mark.faults(3, 5)
def test_a_loss_at_a_message_changes_no_bit(hosts, tmp_path, undisturbed, fault_seed):
    """Of a trainer with its shard, and where there is one trainer, of a shard alone."""
    drawn, how = random.Random(fault_seed), ("SIGKILL", "SIGSTOP")[fault_seed % 2]
    trainers, victim = ((2, 0), (2, 1), (1, 1), (1, 0))[fault_seed % 4]
    strike = {"trainer": drawn.randrange(trainers), "at": drawn.randint(4, 22), "is_after": drawn.random() < 0.5}
    (tmp_path / "strike").write_text(json.dumps({**strike, "how": how, "pid": hosts.own[victim].process.pid}))
    result: list[dict] = []
    answer = team(hosts, tmp_path, result, "struck", trainers=trainers).run()
    assert answer["losses"] == 1
    (lost,) = [said for said in result if "lost" in said]
    assert lost["lost"].startswith(f"local {victim + 1} ")
    assert ("was ended by SIGKILL" if how == "SIGKILL" else "was stopped by a signal") in lost["lost"]
    assert lost["from"] % 3 == 0
    assert support.support.same_bits(support.saved_state(tmp_path), undisturbed[trainers])


def test_a_process_that_cannot_be_started_again_is_left_out_until_it_can(hosts, monkeypatch):
    first, second = hosts.addresses()
    hosts.end([second])

    def join(self, seconds: float) -> None:
        self.kill()
        raise StoreError(f"{self.place.name} did not join the cluster.")

    with monkeypatch.context() as patch:
        patch.setattr(Process, "join", join)
        assert hosts.renew() == "local 2 did not join the cluster."
        assert hosts.addresses() == [first]
    assert hosts.renew() == ""
    assert [process.place.name for process in hosts.own] == ["local 1", "local 2"]
    assert hosts.lost() == []


def test_a_process_that_joins_and_is_not_reached_is_refused_with_what_to_do(hosts, monkeypatch):
    """Messages to it would time out, and the training would begin again and again."""
    monkeypatch.setattr(dask_hosts, "SECONDS_REACH", 0.2)
    command = [sys.executable, "-S", "-c", 'print(\'{"address": "tcp://127.0.0.1:9"}\', flush=True); input()']
    monkeypatch.setattr(hosts, "places", [AgentCommand("node 1", command)])
    monkeypatch.setattr(hosts, "own", [])
    with pytest.raises(StoreError) as error:
        hosts.renew()
    assert str(error.value).startswith("node 1 has joined, but this machine does not reach it at tcp://127.0.0.1:9: ")
    assert str(error.value).endswith(agent_commands.ADVICE)


def test_while_nobody_looks_nobody_is_silent(hosts):
    """The process that looks after all was halted itself, or was starting others."""
    assert hosts.lost() == []
    hosts.looked -= 1000
    hosts.heard = {who: when - 1000 for who, when in hosts.heard.items()}
    assert hosts.lost() == []


def test_who_does_not_answer_for_too_long_is_lost(hosts, monkeypatch):
    assert hosts.lost() == []
    monkeypatch.setattr(hosts, "seconds_silent", -1.0)
    assert [one.address for one in hosts.lost()] == hosts.addresses()
    assert hosts.lost()[0].why.startswith("local 1 has not answered for -1 s.")


def test_what_a_trainer_fails_of_is_told_with_its_log(hosts, tmp_path):
    with pytest.raises(TeamError, match=r"(?s)Trainer 1 on local 2 failed: RuntimeError: no such luck.*Its log.*luck"):
        team(hosts, tmp_path, [], "failing").run()


def test_a_stop_ends_all_trainers_and_the_training_goes_on_later(hosts, tmp_path, undisturbed):
    messages: list[dict] = []
    first = team(hosts, tmp_path, messages)
    first.tell = lambda said: messages.append(said) or ("saved" in said and first.stop())
    first.run()  # to its stop, or to its end if that came before
    assert any("saved" in said for said in messages)
    assert team(hosts, tmp_path, messages).run()["losses"] == 0
    assert support.support.same_bits(support.saved_state(tmp_path), undisturbed[2])


def test_a_trial_of_a_sweep_by_two_trainers_fills_its_row(hosts):
    """The one test of it with processes of its own: they start in a child of a sweep, too."""
    of = support.configuration(trainers=2, threads=2, epochs=1)
    measure = Measure(seconds_warmup=0, seconds_total=0.01, samples_least=2).model_dump()
    (row,) = training.answers({"cell": of.model_dump(mode="json"), "measure": measure, "bytes_limit": 2**40})
    assert (row["status"], row["reason"]) == ("ok", "")
    assert row["error"] <= row["error_allowed"]
    assert (row["rows_trained"], row["steps_epoch"], row["steps_timed"]) == (66, 6, 5)
    assert min(row["seconds_step"], row["quality"], row["bytes_peak"]) > 0
    assert store.TRIALS.new_row(**{name: value for name, value in row.items() if name != "seconds_measured"})


def test_a_checkpoint_of_another_training_is_refused(hosts, tmp_path):
    team(hosts, tmp_path, []).run()
    other = Job(support.configuration(seed=4).model_dump(mode="json"), 2, str(tmp_path))
    with pytest.raises(TeamError, match="is of a training with other settings"):
        Team(hosts, other).run()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate with")
def test_processes_behind_ssh_are_encrypted_and_train_the_same(tmp_path, undisturbed, monkeypatch):
    """What stands for ssh runs its last argument here, as ssh does elsewhere."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text('#!/bin/sh\n[ "$1" = -G ] && exit 1\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    with Hosts("ssh:one,two", tmp_path / "hosts", address="127.0.0.1") as made:
        assert all(address.startswith("tls://127.0.0.1:") for address in made.addresses())
        assert (tmp_path / "hosts" / "tls").stat().st_mode & 0o077 == 0
        team(made, tmp_path / "run", []).run()
        with pytest.raises((OSError, TimeoutError, ValueError)):
            Client(made.cluster.scheduler_address.replace("tls://", "tcp://"), timeout="2s", set_as_default=False)
    assert support.support.same_bits(support.saved_state(tmp_path / "run"), undisturbed[2])


def test_a_process_whose_starter_is_gone_ends():
    with socket.create_server(("127.0.0.1", 0)) as scheduler:  # which never answers
        address = f"tcp://127.0.0.1:{scheduler.getsockname()[1]}"
        command = [sys.executable, "-m", "workbench.cluster.worker", address]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as started:
            started.stdin.close()
            assert started.wait(SECONDS) == 0
        assert worker.unreachable_reason(address) == ""
    why = worker.unreachable_reason(address)
    assert why.startswith(f"the machine that started it at {address}: ")
    assert "Connection refused" in why


def started(tmp_path, code: str, program: str = sys.executable) -> Process:
    return Process(AgentCommand("node 1", (program, "-S", "-c", code)), tmp_path / "log")


def test_what_a_process_says_and_prints_that_does_not_join_is_told(tmp_path):
    (tmp_path / "log").write_text("of another process before\n")
    one = started(tmp_path, "import sys; print('Welcome!'); print('no key', file=sys.stderr)")
    with pytest.raises(StoreError) as error:
        one.join(SECONDS)
    assert str(error.value).startswith("node 1 did not join the cluster. It said b'Welcome!\\n'. Its log ")
    assert str(error.value).endswith("ends with:\nno key")


def test_a_shell_that_greets_is_not_taken_for_the_process(tmp_path):
    one = started(tmp_path, "print('Welcome!'); print('{\"address\": \"here\"}', flush=True)")
    one.join(SECONDS)
    assert one.address == "here"
    one.kill()


def test_a_process_that_does_not_reach_this_machine_is_told_with_what_to_do(tmp_path):
    one = started(tmp_path, 'print(\'{"unreached": "it: refused."}\', flush=True); input()')
    with pytest.raises(StoreError) as error:
        one.join(60)
    assert str(error.value) == f"node 1 does not reach it: refused. {agent_commands.ADVICE}"
    assert one.process.returncode


def test_a_program_that_is_not_there_is_told(tmp_path):
    with pytest.raises(StoreError, match=r"node 1 cannot be started: .*/no/such/program"):
        started(tmp_path, "", "/no/such/program")


def test_how_a_process_ended_is_told(tmp_path):
    one = started(tmp_path, 'import os; print(\'{"address": "here"}\', flush=True); os._exit(3)')
    one.join(SECONDS)
    one.process.wait(SECONDS)
    assert one.address == "here"
    assert one.why_ended() == f"node 1 ended with status 3. Its log {tmp_path / 'log'} is empty."
    one.kill()
