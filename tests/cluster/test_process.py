"""A process that is started for a training: what is said when it does not come, and whose log it is."""

import sys

import pytest

from tests.support.clocks import SECONDS
from workbench.cluster.dask_hosts import Process
from workbench.kvstore import StoreError
from workbench.sweeps import agent_commands
from workbench.sweeps.agent_commands import AgentCommand


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
