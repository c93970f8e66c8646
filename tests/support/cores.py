"""Two cores that take what is said of them, for choices of threads that are played through without waiting."""

from collections.abc import Callable

import pytest

from kernels import choice, choosing
from kernels.choice import Costs
from tests.support.clocks import Clock

COSTS = Costs(seconds_awake=2e-6, seconds_asleep=95e-6, seconds_stay=40e-6, seconds_work=1e-10)
US = 1e-6

Times = Callable[[int], tuple[float, float]]
"""Seconds of a call by its number: on one thread, and shared by threads that are awake."""


class Cores:
    """Two cores whose calls take what is said of them, by a clock that stands still but for that; threads that are not
    awake are woken at their price, and an empty region takes `region`."""

    def __init__(self) -> None:
        self.clock, self.choices = Clock(), choosing.Choices()
        self.awake_until, self.region, self.woken = -1.0, COSTS.seconds_awake, 0

    def wake(self, count: int) -> None:
        if self.clock.now > self.awake_until:
            self.clock.now += COSTS.seconds_asleep
            self.woken += 1
        self.awake_until = self.clock.now + COSTS.seconds_stay

    def seconds_awake(self, count: int) -> float:
        self.wake(count)
        self.clock.now += self.region
        return self.region

    def calls(self, times: Times, count: int, pause: float = 0.0, work: int = 30_000, maker: str = "one") -> str:
        """The sides of so many calls of one work with a pause after each: 1, 2, or . for one that was not timed."""
        sides = ""
        for number in range(count):
            alone, shared = times(number)
            if self.choices.is_cached_serial((maker, work)):
                sides += "."
                self.clock.now += alone
            else:
                sides += str(self.choices.begin((maker, work), 2, COSTS))
                self._run(sides[-1] == "2", alone, shared)
                self.choices.ended()
            self.clock.now += pause
        return sides

    def _run(self, is_shared: bool, alone: float, shared: float) -> None:
        if not is_shared:
            self.clock.now += alone
            return
        if self.clock.now > self.awake_until:  # nobody woke them, and the region does
            self.clock.now += COSTS.seconds_asleep
        self.clock.now += shared
        self.awake_until = self.clock.now + COSTS.seconds_stay


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Cores:
    one = Cores()
    monkeypatch.setattr(choosing, "perf_counter", one.clock)
    monkeypatch.setattr(choice, "wake", one.wake)
    monkeypatch.setattr(choice, "seconds_awake", one.seconds_awake)
    return one
