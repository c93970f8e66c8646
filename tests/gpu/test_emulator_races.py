"""The emulated device refuses accesses that nothing orders, and writes of what is loaded past the caches."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.emulator.device import EmulatorError, emulator, run, source_of

UNORDERED = "with nothing in between that orders it"
SOURCE = source_of(Path(__file__).with_name("races.cu"))
LOADED = ("own_place", "written_before")
LANES = np.arange(128)
ORDERED = {
    "by_barrier": LANES[::-1],
    "by_lanes": LANES ^ 1 ^ 31,
    "by_atomics": np.full(128, 65),
    "side_by_side": np.repeat([0x10001, 0x20002], 64),
    "only_loaded": np.ones(128),
}
RACES = [name for name in SOURCE.names if name not in (*LOADED, *ORDERED)]


def ones():
    return emulator.put(np.ones(128, np.int32))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", RACES)
def test_what_nothing_orders_is_an_error(name: str, seed: int) -> None:
    blocks, threads = (8, 1) if name == "of_blocks" else (1, 128)
    with pytest.raises(EmulatorError, match=rf"^{name}: .*, which thread \d+ .*, {UNORDERED}"):
        run(SOURCE, name, blocks, threads, (ones(),), seed)


def test_error_says_who_met_where() -> None:
    who = "^of_blocks: block 1, thread 0: writes byte 0 of the array of argument 0, which thread 0 of block 0 wrote, "
    with pytest.raises(EmulatorError, match=who):
        run(SOURCE, "of_blocks", 6, 1, (ones(),))
    with pytest.raises(EmulatorError, match=r"of shared memory, which thread \d+ of block 0 (read|wrote), "):
        run(SOURCE, "without_barrier", 1, 128, (ones(),))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", LOADED)
def test_write_of_what_is_loaded_past_the_caches_is_an_error(name: str, seed: int) -> None:
    with pytest.raises(EmulatorError, match=rf"^{name}: .*(loads|loaded) past the caches"):
        run(SOURCE, name, 1, 128, (ones(),), seed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ORDERED)
def test_what_is_ordered_is_not_refused(name: str, seed: int) -> None:
    out = ones()
    run(SOURCE, name, 1, 128, (out,), seed)
    np.testing.assert_array_equal(emulator.read(out), ORDERED[name])
