"""Advice for a device that is not there is refused with the reason, before anything is measured."""

import pytest

from kernels import devices
from workbench.advising import advising
from workbench.sweeps.spec import SpecError


def test_a_missing_device_is_told_with_the_reason(monkeypatch):
    gpu = devices.probe()
    if gpu.present:
        pytest.skip("there is a CUDA device")
    with pytest.raises(SpecError, match=r"No CUDA device: .*\nTake 'cpu', or leave it out"):
        advising._profile_settings({"dataset": "uniform", "device": "cuda"})
