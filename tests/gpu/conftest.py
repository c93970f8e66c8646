"""Fixtures of tests on the emulated device, which is imported when one of them is asked for."""

import pytest


@pytest.fixture
def ascending():
    """Threads and blocks run in ascending order again when the test is over."""
    from tests.support.emulator.device import emulator

    yield
    emulator.seed = 0


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch):
    """A session on the emulated device, which has compiled nothing."""
    from tests.support.emulated_session import EmulatedSession
    from tests.support.emulator.device import emulator

    monkeypatch.setattr(emulator, "known", set())
    return EmulatedSession(emulator)
