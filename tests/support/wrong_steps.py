"""Steps that train wrongly, for tests that they are found out before they are timed."""

import pytest


def with_wrong_weights(monkeypatch: pytest.MonkeyPatch, steps: type, call: str) -> None:
    """From now on the method `call` of `steps` leaves the weights of its `run` a hundredth too large."""
    right = getattr(steps, call)

    def wrong(self, *args):
        losses = right(self, *args)
        self.run.arrays["w"] *= 1.01
        return losses

    monkeypatch.setattr(steps, call, wrong)
