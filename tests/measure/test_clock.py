"""The clock: warm-up, samples that are long enough and enough of them, in one go and in turns."""

import gc

import pytest

from tests.support.clocks import Clock
from workbench.measure import clock


def sampled(step, policy) -> clock.Sampler:
    """A sampler that has taken all its samples."""
    sampler = clock.Sampler(step, policy)
    sampler.take_all()
    return sampler


def test_short_steps_are_grouped_until_a_sample_is_long_enough(monkeypatch):
    time = Clock()
    monkeypatch.setattr(clock, "perf_counter", time)

    def step() -> dict[str, float]:
        time.now += 2e-4
        return {"work": 2e-4, "other": 1e-4}

    policy = clock.Policy(seconds_warmup=0.01, seconds_sample=0.004, seconds_total=0.018, samples_least=3)
    sampler = sampled(step, policy)
    assert (sampler.samples.steps_a_sample, sampler.samples.steps) == (20, 100)
    assert sampler.samples.seconds == pytest.approx([2e-4] * 5)
    assert sampler.phases() == pytest.approx({"work": 2e-4, "other": 1e-4})


def test_sampling_ends_by_count_or_by_time_but_has_the_least():
    quick = clock.Policy(seconds_warmup=0, seconds_sample=0, seconds_total=100, samples_least=2, samples_most=5)
    assert len(sampled(dict, quick).samples.seconds) == 5
    least = clock.Policy(seconds_warmup=0, seconds_sample=0, seconds_total=0, samples_least=4)
    assert len(sampled(dict, least).samples.seconds) == 4


SHORT = clock.Policy(seconds_warmup=0, seconds_sample=0.001, seconds_total=0.15, seconds_counted=0.005)


@pytest.mark.parametrize(("seconds", "is_quiet", "count"), [(1e-4, True, 30), (1e-4, False, 150), (0.006, True, 25)])
def test_short_steps_have_as_many_samples_as_longer_ones_unless_other_programs_run(ticking, seconds, is_quiet, count):
    _, _, lasting = ticking
    sampler = clock.Sampler(lasting(seconds), SHORT, is_quiet=lambda: is_quiet)
    sampler.take_all()
    assert len(sampler.samples.seconds) == pytest.approx(count, abs=1)


def test_a_turn_of_short_steps_counts_their_samples_as_longer_ones(ticking):
    _, _, lasting = ticking
    sampler = clock.Sampler(lasting(1e-4), SHORT)
    turns = 0
    while not sampler.is_enough:
        sampler.take_turn(0.05, 0.015)
        turns += 1
    assert turns == 3
    assert len(sampler.samples.seconds) == pytest.approx(30, abs=1)


@pytest.mark.parametrize(("cycle", "steps"), [(1, 10), (4, 8), (7, 7), (10, 10), (11, 10)])
def test_a_sample_has_whole_cycles_of_steps_if_it_is_longer_than_one(ticking, cycle, steps):
    _, _, lasting = ticking
    assert clock.Sampler(lasting(1e-4), SHORT, cycle=cycle).samples.steps_a_sample == steps


def test_sampling_that_is_cut_short_keeps_its_samples_and_says_so():
    slow = clock.Policy(seconds_warmup=9.0, seconds_sample=0, seconds_total=9.0, seconds_most=0.0)
    cut = sampled(dict, slow)
    assert (len(cut.samples.seconds), cut.samples.steps, cut.is_cut) == (1, 1, True)
    quick = clock.Policy(seconds_warmup=0, seconds_sample=0, seconds_total=0, samples_least=1)
    assert not sampled(dict, quick).is_cut


def test_no_garbage_is_collected_while_samples_are_taken():
    seen = []
    policy = clock.Policy(seconds_warmup=0, steps_warmup=1, seconds_sample=0, seconds_total=0, samples_least=2)
    sampled(lambda: seen.append(gc.isenabled()) or {}, policy)
    assert seen == [True, False, False]
    assert gc.isenabled()


def test_warm_up_does_its_steps_and_is_not_sampled():
    calls = []
    policy = clock.Policy(seconds_warmup=0, steps_warmup=6, seconds_sample=0, seconds_total=0, samples_least=1)
    taken = sampled(lambda: calls.append(1) or {}, policy).samples
    assert (len(calls), taken.steps) == (7, 1)


@pytest.fixture
def ticking(monkeypatch):
    """A clock, and a maker of steps that take so many of its seconds; `done` has when each began."""
    time, done = Clock(), []
    monkeypatch.setattr(clock, "perf_counter", time)

    def lasting(seconds: float):
        def step() -> dict[str, float]:
            done.append(time.now)
            time.now += seconds
            return {"work": seconds}

        return step

    return time, done, lasting


POLICY = clock.Policy(seconds_warmup=0, steps_warmup=1, seconds_sample=0.004, seconds_total=0.1, samples_least=3)


def test_a_turn_leaves_out_its_beginning_and_what_is_enough_takes_several(ticking):
    time, done, lasting = ticking
    sampler = clock.Sampler(lasting(0.002), POLICY)
    done.clear()
    sampler.take_turn(0.05, 0.015)
    assert done[0] == pytest.approx(0.002)
    assert sampler.samples.seconds_sampled == pytest.approx(0.052, abs=0.005)
    assert time.now - done[0] == pytest.approx(0.016 + sampler.samples.seconds_sampled, abs=1e-9)
    assert not sampler.is_enough
    time.now += 100.0  # another process has its turn
    sampler.take_turn(0.05, 0.015)
    assert sampler.is_enough
    assert max(sampler.samples.seconds) == pytest.approx(0.002)


def test_a_step_longer_than_a_turn_is_a_turn(ticking):
    _, done, lasting = ticking
    sampler = clock.Sampler(lasting(0.2), POLICY)
    for count in (1, 2, 3):
        assert not sampler.is_enough
        sampler.take_turn(0.05, 0.015)
        assert len(done) == 1 + count, "none is left out"
    assert sampler.is_enough


def test_another_round_has_samples_and_a_limit_of_its_own(ticking):
    _, _, lasting = ticking
    sampler = clock.Sampler(lasting(0.002), POLICY)
    sampler.take_turn(1.0, 0.0)
    first = sampler.samples
    sampler.begin(seconds_most=0.01)
    assert (len(first.seconds) > 3, sampler.samples.seconds, sampler.samples.seconds_warmup) == (True, [], 0.0)
    sampler.take_turn(0.05, 0.0)
    assert sampler.is_cut
