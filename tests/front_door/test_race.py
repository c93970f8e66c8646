"""Races of functions and commands: who is faster, checked results, own arguments, pages, files, wrong input."""

import json
import sys
import time

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

import workbench as wb
from workbench.advising import racing
from workbench.advising.racing import Race, RaceError, Timing
from workbench.command import cli


def timed(busy=0.0, **means):
    """A race with known times: 12 rounds that drift by a factor of 3, with 1 % noise."""
    generator = np.random.default_rng(0)
    drift = np.geomspace(1, 3, 12)
    timings = {
        name: Timing(4, list(mean * drift * np.exp(0.01 * generator.normal(size=12))), [busy] * 12, 1000)
        for name, mean in means.items()
    }
    return Race(timings, "this", {"numpy": "2"}, True)


def test_a_difference_of_a_tenth_shows_through_a_drift_of_the_machine():
    race = timed(slow=1.1e-3, fast=1e-3, far=5e-3)
    assert race.names == ["fast", "slow", "far"]
    ratio = race.ratio("slow", "fast")
    assert ratio.low > 1.02
    assert ratio.high < 1.2
    assert ratio.probability > 0.975
    assert race.verdict.startswith("fast is fastest: slow takes 1.1 times (95 %: ")


def test_equal_times_have_no_winner():
    assert "equally fast" in timed(a=1e-3, b=1e-3).verdict


def test_rounds_beside_other_programs_decide_no_small_difference():
    race = timed(busy=0.9, slow=1.1e-3, fast=1e-3)
    assert race.ratio("slow", "fast").low < 1
    assert race.verdict.startswith("Not decided: either may be faster, ")
    assert "other programs" in race.verdict
    assert "Other programs took 90% of the cores" in str(race)


def test_the_frame_has_a_row_for_each_contestant_the_fastest_first():
    frame = timed(slow=2e-3, fast=1e-3).frame
    assert list(frame["name"]) == ["fast", "slow"]
    assert frame["ratio"][0] == frame["ratio_low"][0] == frame["ratio_high"][0] == 1
    assert frame["ratio"][1] == pytest.approx(2, rel=0.03)
    assert list(frame["rounds"]) == [12, 12]
    assert list(frame["bytes_peak"]) == [1000, 1000]


def test_a_race_measures_who_is_faster_and_what_memory_a_call_adds():
    def little():
        return float(np.zeros(10).sum())

    def much():
        return float(np.ones(5_000_000).sum() * 0)  # above 32 MiB the C library takes no memory that was freed before

    race = wb.race({"much": much, "little": little}, budget=0.3)
    assert race.fastest == "little"
    assert race.agree
    assert len(race.timings["little"].seconds) >= racing.LEAST_ROUNDS
    assert race.timings["much"].bytes_peak >= 35_000_000
    assert race.timings["little"].bytes_peak < 5_000_000


def test_each_function_has_arguments_of_its_own():
    given = np.zeros(3)

    def change(x):
        x += 1
        return 0

    wb.race({"change": change, "look": lambda x: int(x.sum())}, args=[given], budget=0.01)
    assert not given.any()


def test_setup_gives_each_call_its_argument_and_is_not_timed():
    def setup():
        time.sleep(0.002)
        return [3, 1, 2]

    def empty(values):
        assert values == [3, 1, 2]
        values.clear()

    race = wb.race({"clear": empty, "again": empty}, setup=setup, budget=0.05)
    assert max(race.frame["seconds"]) < 0.002


@pytest.mark.parametrize(
    ("one", "other", "agrees"),
    [
        (1.0, 1.0 + 1e-9, True),
        (1.0, 1.1, False),
        (np.arange(3.0), np.arange(3.0) + 1e-7, True),
        (np.arange(3.0), np.arange(4.0), False),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True),
        (scipy.sparse.csr_array(np.eye(3)), np.eye(3), True),
        (scipy.sparse.csr_array(np.eye(3)), scipy.sparse.coo_array(np.eye(3)), True),
        (scipy.sparse.csr_array(np.eye(3)), scipy.sparse.csr_array(2 * np.eye(3)), False),
        (scipy.sparse.csr_array(np.eye(3)), scipy.sparse.csr_array(np.eye(4)), False),
        ([1, "a"], [1, "a"], True),
        ((1, 2), (1, 2, 3), False),
        ({"a": 1.0}, {"a": 1.0}, True),
        ({"a": 1.0}, {"b": 1.0}, False),
        (np.array(["a", "b"]), np.array(["a", "c"]), False),
        (None, None, True),
        (None, 0, False),
    ],
)
def test_results_must_agree(one, other, agrees):
    contestants = {"one": lambda: one, "other": lambda: other}
    if agrees:
        assert wb.race(contestants, budget=0.01).agree
        return
    with pytest.raises(RaceError, match="The results of 'other' and 'one' do not agree"):
        wb.race(contestants, budget=0.01)
    race = wb.race(contestants, budget=0.01, check=False)
    assert race.agree is None
    assert "not compared" in str(race)


def test_a_check_of_ones_own_decides():
    contestants = {"one": lambda: 1, "other": lambda: 2}
    assert wb.race(contestants, check=lambda first, other: abs(first - other) < 2, budget=0.01).agree
    with pytest.raises(RaceError, match="check returned False"):
        wb.race(contestants, check=lambda first, other: False, budget=0.01)


@pytest.mark.parametrize(
    ("contestants", "options", "says"),
    [
        ({"one": int}, {}, "A race of 1 function; expected two or more.\nType wb.race"),
        ({"one": int, "other": 3}, {}, "'other' is 3; expected a function"),
        ({"one": int, "other": int}, {"budget": 0}, "budget is 0; expected a positive number of seconds"),
        ({"one": int, "other": int}, {"budget": float("nan")}, "budget is nan"),
        ({"one": int, "other": lambda: 1 / 0}, {}, "'other' raised ZeroDivisionError: division by zero"),
        ({"one": int, "other": int}, {"args": [1], "setup": int}, "Both args and setup give arguments"),
    ],
)
def test_wrong_input_is_named(contestants, options, says):
    with pytest.raises(RaceError, match=says):
        wb.race(contestants, **options)


def test_an_unknown_contestant_lists_the_known_ones():
    with pytest.raises(RaceError, match=r"Unknown contestant 'c'\. Expected one of: a, b\."):
        timed(a=1, b=2).ratio("c", "a")


def test_what_was_saved_is_loaded_and_compared(tmp_path):
    before = timed(a=1e-3, b=2e-3)
    path = before.save(tmp_path / "race.json")
    again = Race.load(path)
    assert again.ratio("b", "a") == before.ratio("b", "a")
    compared = timed(b=8e-3, c=1e-3).compare(again)
    assert list(compared["name"]) == ["b"]
    assert compared["ratio"][0] == pytest.approx(4, rel=0.1)
    assert compared["ratio_low"][0] > 2
    with pytest.raises(RaceError, match="No contestant is in both races: c, d; before a, b"):
        timed(c=1, d=2).compare(again)
    with pytest.raises(RaceError, match="of two machines"):
        Race(before.timings, "other", {}).compare(again)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"timings": {}}', '{"timings": {"a": {"seconds": [-1], "busy": [0]}}}']
)
def test_a_file_that_is_no_race_is_refused(tmp_path, text):
    path = tmp_path / "race.json"
    path.write_text(text)
    with pytest.raises(RaceError, match="is no race that was saved"):
        Race.load(path)


def test_the_page_needs_no_other_file_and_escapes_names(tmp_path):
    path = timed(**{"<b>": 1e-3, "other": 2e-3}).report(tmp_path / "race.html")
    page = path.read_text()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "<svg" in page
    assert "src=" not in page


def test_the_picture_names_every_contestant_and_its_time():
    ax = timed(a=1e-3, b=2e-3, c=9e-3).plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]
    assert len(ax.texts) == 3
    assert ax.get_xlabel() == "time / time of the fastest (95 % interval)"


def test_whole_commands_race(tmp_path):
    code = f"{sys.executable} -S -c"
    quick, long = f"{code} 'pass'", f"{code} 'x = bytearray(40_000_000); import time; time.sleep(0.3)'"
    out = tmp_path / "race.html"
    came = CliRunner().invoke(cli.app, ["race", long, quick, "--budget", "0.2", "--out", str(out)])
    assert came.exit_code == 0, came.output
    assert "95 %" in came.stdout
    assert out.exists()
    came = CliRunner().invoke(cli.app, ["race", long, quick, "--budget", "0.2", "--json"])
    timings = json.loads(came.stdout)["timings"]
    assert min(timings[long]["seconds"]) >= 0.3
    assert timings[long]["bytes_peak"] > timings[quick]["bytes_peak"] + 30_000_000


@pytest.mark.parametrize(
    ("commands", "says"),
    [
        (["sleep 0", "no-such-program-here"], "'no-such-program-here' cannot be started"),
        (["sleep 0", f"{sys.executable} -c 'print(5); raise SystemExit(3)'"], "ended with status 3:\n5"),
        (["sleep 0"], "A race of 1 command; expected two or more.\nType workbench race "),
        (["sleep 0", "sleep 0"], "Two commands are the same"),
        (["sleep 0", "echo '"], "cannot be split into words"),
        (["sleep 0", ""], "A command is empty"),
    ],
)
def test_wrong_commands_are_named(commands, says):
    with pytest.raises(RaceError, match=says):
        racing.race_commands(commands, budget=0.05)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_the_share_of_other_programs_is_measured_for_calls_shorter_than_a_tick_of_the_system(share, seed, monkeypatch):
    """Each of two contestants runs on a core for 5 ms a sample; the system counts 0 or 10 ms of it."""
    monkeypatch.setattr(racing.os, "cpu_count", lambda: 2)
    made, taken = np.random.default_rng(seed), []
    for _ in range(2):
        ticks = 0.01 * made.binomial(1, 0.5, 1500) - 0.005
        taken.append([(tick + share * 0.01, 0.01) for tick in ticks])
    own, of_all = racing._added_up(taken[:1]), racing._added_up(taken)
    found = [racing.share_of_others(own, of_all, first, first + 25) for first in range(0, 1500, 25)]
    np.testing.assert_allclose(found, share, rtol=0, atol=0.12)
    assert np.mean(found) == pytest.approx(share, abs=0.02)


def test_the_share_of_long_samples_is_that_of_their_own_time():
    of_one, of_other = [(2.0, 4.0), (0.0, 4.0)], [(0.0, 4.0), (1.0, 4.0)]
    of_all = racing._added_up([of_one, of_other])
    assert [racing.share_of_others(racing._added_up([of_one]), of_all, k, k + 1) for k in (0, 1)] == [0.5, 0.0]
    assert [racing.share_of_others(racing._added_up([of_other]), of_all, k, k + 1) for k in (0, 1)] == [0.0, 0.25]
    few = racing._added_up([[(0.001, 0.002)]])
    assert racing.share_of_others(few, few, 0, 1) == 0.5, "all that there is"
