"""A training that loses processes and messages at any moment has the bits of one that is not disturbed.

A few seeds here; `pytest tests/cluster --faults 200` runs as many, and a fifth of them on processes of the system.
"""

import random

import pytest

from tests.support import shared_training as support
from tests.support import thread_hosts
from tests.support.clocks import SECONDS, ended
from tests.support.shards import Faulty, same_bits
from tests.support.thread_hosts import HOW, PLACING, WHEN, Strike, ThreadHosts
from workbench.cluster import checkpoints, team
from workbench.cluster.team import Team
from workbench.cluster.trainer import Job
from workbench.kvstore import StoreError

MESSAGES = 36
"""What a trainer sends when nothing happens, about."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The state after a training without losses, by its number of trainers."""
    known: dict[int, dict] = {}

    def of(trainers: int) -> dict:
        if trainers not in known:
            folder = tmp_path_factory.mktemp("alone")
            support.on_threads(support.configuration(), trainers, 1, folder=str(folder))
            known[trainers] = support.saved_state(folder)
        return known[trainers]

    return of


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(team, "SECONDS_LOOK", 0.002)


def trained(hosts: ThreadHosts, folder, trainers: int, shards: int, steps_saved: int = 3) -> tuple[dict, list[dict]]:
    """The answer of a training on these processes, and what it told; a test that hangs fails."""
    messages = list[dict]()
    job = Job(support.configuration().model_dump(mode="json"), trainers, str(folder), steps_saved, seconds=SECONDS)
    answer = ended(Team(hosts, job, shards, messages.append).run)
    if isinstance(answer, BaseException):
        raise answer
    return answer, messages


@pytest.mark.faults(8, 1)
def test_losses_at_any_message_change_no_bit(tmp_path, undisturbed, fault_seed):
    made = random.Random(f"sizes {fault_seed}")
    trainers, processes, shards, steps_saved = (made.randint(1, most) for most in (2, 3, 3, 4))
    strikes = thread_hosts.drawn(fault_seed, trainers, processes, MESSAGES)
    hosts = ThreadHosts(processes, strikes, fault_seed)
    answer, results = trained(hosts, tmp_path, trainers, shards, steps_saved)
    assert same_bits(support.saved_state(tmp_path), undisturbed(trainers)), hosts.struck
    assert answer["losses"] == len([said for said in results if "lost" in said])
    last = max((place for place, said in enumerate(results) if "lost" in said), default=0)
    since = results[last].get("from", 0)
    assert [said["step"] for said in results[last:] if "step" in said] == list(range(since + 1, 13))


def test_faults_do_happen(tmp_path, undisturbed):
    """That processes are lost and messages are doubled is what the test above is about: here it is counted."""
    strikes = [Strike(0, 9, WHEN[0], 0, HOW[1]), Strike(PLACING, 2, WHEN[0], 1, HOW[0])]
    strikes += [Strike(1, 15, WHEN[1], 1, HOW[0]), Strike(1, 30, WHEN[2], 0, HOW[0])]
    hosts = ThreadHosts(2, strikes, seed=1)
    answer, _ = trained(hosts, tmp_path, trainers=2, shards=2)
    assert sorted(hosts.struck) == sorted(strikes)  # which of two trainers is struck first is up to their threads
    assert answer["losses"] == 4
    assert set(hosts.seen) == set(Faulty.FATES)
    assert same_bits(support.saved_state(tmp_path), undisturbed(2))


def test_trainers_begin_again_when_those_before_have_written_their_checkpoint(tmp_path, undisturbed, monkeypatch):
    """Seeds 71, 128, 138 and 153: it was written after it was looked from which step to go on, here after any time."""
    monkeypatch.setattr(team, "SECONDS_SETTLE", 0.0)
    hosts, write, written = ThreadHosts(2, [], seed=1, fates=["well"]), checkpoints.write, []

    def write_late(folder, manifest) -> None:
        if not written:
            hosts.processes[1].state = "killed"
            thread_hosts.wait_for_a_turn(lambda: hosts.counts[PLACING] > 1)
        written.append(hosts.counts[PLACING])
        write(folder, manifest)

    monkeypatch.setattr(checkpoints, "write", write_late)
    _, result = trained(hosts, tmp_path, trainers=2, shards=1)
    assert written[0] == 1
    assert [said["step"] for said in result if "step" in said][-9:] == list(range(4, 13))
    assert same_bits(support.saved_state(tmp_path), undisturbed(2))


def test_workers_of_a_scheduler_that_was_started_anew_are_waited_for(tmp_path, undisturbed, monkeypatch):
    """It has none yet when the training looks, which ended with "No process is left"."""
    hosts, looks = ThreadHosts(2, [], seed=1, fates=["well"]), []

    def addresses() -> list[str]:
        looks.append(len(looks))
        return [process.address for process in hosts.processes] if len(looks) > 3 else []

    monkeypatch.setattr(hosts, "addresses", addresses)
    trained(hosts, tmp_path, trainers=2, shards=1)
    assert same_bits(support.saved_state(tmp_path), undisturbed(2))
    monkeypatch.setattr(hosts, "addresses", list)
    monkeypatch.setattr(team, "SECONDS_JOIN", 0.01)
    with pytest.raises(team.TeamError, match=r"No process is left .* none came within 0\.01 s\. Start workers"):
        trained(hosts, tmp_path / "none", trainers=2, shards=1)


def test_a_trainer_that_does_not_end_is_ended_with_its_process(tmp_path, undisturbed, monkeypatch):
    """It would hold up all others for ever, or write a checkpoint while they begin again from the one before."""
    monkeypatch.setattr(team, "SECONDS_SETTLE", 0.0)
    hosts, write, held = ThreadHosts(2, [], seed=1, fates=["well"], are_own=True), checkpoints.write, []

    def write_never(folder, manifest) -> None:
        if held:
            write(folder, manifest)
            return
        own, other = hosts.processes
        held.append(own)
        other.state = "killed"
        assert own.gone.wait(SECONDS)
        raise thread_hosts.Ended

    monkeypatch.setattr(checkpoints, "write", write_never)
    _, result = trained(hosts, tmp_path, trainers=2, shards=1)
    assert held[0] not in hosts.processes
    assert [said["from"] for said in result if "lost" in said] == [0]
    assert same_bits(support.saved_state(tmp_path), undisturbed(2))


def test_what_cannot_be_trained_is_told_without_the_log_of_a_process(tmp_path, monkeypatch):
    """Its end is a traceback, which says nothing to whoever asked for too many trainers."""
    hosts = ThreadHosts(2, [], seed=1, fates=["well"])
    monkeypatch.setattr(hosts, "tail", lambda address: "Its log ends with: Traceback")
    job = Job(support.configuration(rows=3, batch_rows=4).model_dump(mode="json"), 4, str(tmp_path), seconds=SECONDS)
    result = ended(Team(hosts, job, 1).run)
    assert isinstance(result, team.TeamError)
    assert str(result).partition(" on process ")[0] in [f"Trainer {number}" for number in range(4)]
    assert str(result).endswith("failed: DataError: 2 rows cannot be shared by 4 trainers; take fewer of them.")


def test_a_checkpoint_whose_files_another_training_removed_is_never_the_newest(tmp_path, undisturbed):
    """A process that was halted before it wrote the manifest goes on after others have saved."""
    support.on_threads(support.configuration(), 2, 2, folder=str(tmp_path))
    newest = checkpoints.read(tmp_path)
    late = checkpoints.Manifest("step-3-0123456789ab", 2, newest.spread, newest.values, newest.settings, {"step": 3})
    with pytest.raises(StoreError, match="another training saves into"):
        checkpoints.write(tmp_path, late)
    assert same_bits(support.saved_state(tmp_path), undisturbed(2))
