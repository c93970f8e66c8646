"""What it takes to enter a parallel region: measured once, kept, and waited for with an end."""

import dataclasses
import json

import numpy as np
import pytest

from kernels import choice
from kernels.choice import Costs
from kernels.threads import get_threads, set_threads

COSTS = Costs(seconds_awake=2e-6, seconds_asleep=95e-6, seconds_stay=40e-6, seconds_work=1e-10)


@pytest.mark.parametrize(
    "kept", [{}, {"seconds_awake": 1e-6}, [1, 2], dict.fromkeys(vars(COSTS), 0.0), dict.fromkeys(vars(COSTS), "1")]
)
def test_a_file_of_costs_that_is_none_is_refused(kept):
    with pytest.raises((ValueError, TypeError)):
        choice.checked(kept)


def test_costs_are_measured_once_and_found_again(tmp_path, monkeypatch):
    measured = []
    monkeypatch.setattr(choice, "folder_of", lambda function: tmp_path)
    monkeypatch.setattr(choice, "measure", lambda threads: measured.append(threads) or COSTS)
    for _ in range(2):
        assert choice.costs.__wrapped__(2) == COSTS
    assert measured == [2]
    (file,) = tmp_path.iterdir()
    file.write_text(json.dumps({"seconds_awake": -1.0}))
    assert choice.costs.__wrapped__(2) == COSTS
    assert measured == [2, 2]


@pytest.mark.parametrize(("awake", "stay"), [(50e-6, 40e-6), (2e-6, 5e-6)])
def test_costs_that_others_disturbed_are_used_and_not_kept(awake, stay, tmp_path, monkeypatch):
    disturbed = Costs(seconds_awake=awake, seconds_asleep=130e-6, seconds_stay=stay, seconds_work=1e-10)
    monkeypatch.setattr(choice, "folder_of", lambda function: tmp_path)
    monkeypatch.setattr(choice, "measure", lambda threads: disturbed)
    assert choice.costs.__wrapped__(2) == disturbed
    assert not [*tmp_path.iterdir()]


def test_costs_of_this_machine_are_in_order():
    """Entering a region of sleeping threads is never cheaper than one of threads that are awake."""
    costs = choice.measure(1)
    assert 0 < costs.seconds_awake <= costs.seconds_asleep
    assert choice.checked(dataclasses.asdict(costs)) == costs


def test_waiting_for_a_thread_that_has_no_core_ends():
    before = get_threads()
    begun = np.zeros(2 * choice.SPACE, np.int64)
    set_threads(1)
    try:
        choice._region(begun, 100)
    finally:
        set_threads(before)
    assert begun[0] == 100, "it has waited for the other part, which comes after it"
    assert begun[choice.SPACE] == 1, "which found that all had begun"
