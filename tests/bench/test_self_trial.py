"""Parts of the self-trial on synthetic trials: what is judged, stored, shown, and refused."""

import json

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import kernels
from tests.support import self_trial_rows as maker
from tests.support.self_trial_rows import Measured
from workbench import plots, store
from workbench.analysis import self_trial as analysis
from workbench.bench import self_trial
from workbench.bench.self_trial import noise, same, slow, trials
from workbench.command import cli
from workbench.measure import machine
from workbench.reports import suites as reports
from workbench.sweeps.alternation import ROUNDS_A_SET

CONFIGURATION = trials.groups()[0]["csr"]


def meeting(first, second, load="quiet", **more):
    """Rows of a candidate against itself: seconds of both names by round."""
    pairs = enumerate(zip(first, second, strict=True))
    return [
        maker.trial(CONFIGURATION, name, number, seconds, "same", load, **more)
        for number, pair in pairs
        for name, seconds in zip(same.NAMES, pair, strict=True)
    ]


def test_a_candidate_that_wins_against_itself_is_counted_beside_its_load():
    level = [1.0, 1.01, 0.99, 1.0] * 3
    rows = meeting(level, level[::-1]) + meeting(level, [3.0, 3.1, 2.9, 3.0] * 3, "busy core")
    found = same.decisions(rows)
    assert {load: [decision.verdict for decision in decisions] for load, decisions in found.items()} == {
        "quiet": ["level"],
        "busy core": ["sparse"],
    }
    shown = {(row["what"], row["condition"]): (row["hits"], row["count"]) for row in same.outcomes(found)}
    what = "a candidate against itself gets a winner"
    assert [shown[what, condition] for condition in ("all", "quiet", "busy core")] == [(1, 2), (0, 1), (1, 1)]
    assert shown["a candidate against itself is found level", "all"] == (1, 2)


def test_a_meeting_that_was_cut_off_is_not_counted():
    noisy = [1.0, 2.0, 0.5, 1.5]
    assert not same.decisions(meeting(noisy, noisy[::-1]))
    whole = same.decisions(meeting(noisy * 3, noisy[::-1] * 3))
    assert [one.verdict for one in whole["quiet"]] == ["inconclusive"]


@pytest.mark.parametrize(("status", "count"), [("ok", 0), ("disturbed", 1)])
def test_a_meeting_that_the_schedule_gave_up_next_to_a_load_is_counted(status, count):
    noisy = [1.0, 2.0, 0.5, 1.5]
    found = same.decisions(meeting(noisy, noisy[::-1], "busy core", status=status))
    assert sum(map(len, found.values())) == count


def test_a_meeting_whose_rounds_were_all_disturbed_is_decided_only_by_a_large_factor():
    for factor, verdict in ((1.3, "inconclusive"), (9.0, "sparse")):
        found = same.decisions(meeting([1.0] * 12, [factor] * 12, "memory traffic", status="disturbed"))
        (one,) = found["memory traffic"]
        assert (one.verdict, one.rounds, one.ratio.disturbed) == (verdict, 12, 12)


def test_candidates_meet_themselves_in_each_twelve_rounds_of_a_recording():
    rows = maker.recording(25, sd=0.001)
    found = same.decisions_in_recording(rows)
    assert len(found) == 2 * 2 * 3
    assert not [one for one in found if one.verdict in ("sparse", "dense")]
    assert all(one.ratio.low > 0.85 and one.ratio.high < 1.18 for one in found)
    faster = [row | {"seconds_step": row["seconds_step"] / 2} if row["key"].endswith("back") else row for row in rows]
    found = same.decisions_in_recording(faster)
    assert {one.verdict for one in found} == {"dense"}
    assert max(one.rounds for one in found) < 12


def test_a_recording_has_each_candidate_there_and_back_in_turned_order(measured, tmp_path):
    noise.record(tmp_path, trials.Budget(0.0))
    loads = [trials.load_of(row["experiment"]) for row in measured]
    assert set(loads) == set(noise.CONDITIONS)
    assert all(loads.count(load) == 6 * 6 * ROUNDS_A_SET for load in noise.CONDITIONS)
    names = [(trials.candidate_of(row), trials.split_key(row["key"])[1]) for row in measured[:6]]
    assert [name for name, _ in names] == [*trials.CANDIDATE_SETTINGS, *reversed(trials.CANDIDATE_SETTINGS)]
    assert [half for _, half in names] == ["there"] * 3 + ["back"] * 3
    order = noise.there_and_back(trials.groups()[0], 1)
    assert [task.configuration.format for task in order[:3]] == ["dense", "csr", "csr"]


def test_a_recording_goes_on_with_the_condition_that_lacks_most(measured, tmp_path, monkeypatch):
    monkeypatch.setattr(noise, "CONDITIONS", {"quiet": 2, "bursts": 1})
    begun = {"quiet": 6 * ROUNDS_A_SET, "bursts": ROUNDS_A_SET}
    monkeypatch.setattr(noise, "_rounds_recorded", lambda folder: dict(begun))
    seen = iter([False, False, True, True])
    budget = trials.Budget(60.0)
    monkeypatch.setattr(trials.Budget, "is_over", property(lambda self: next(seen)))
    noise.record(tmp_path, budget)
    assert {trials.load_of(row["experiment"]) for row in measured} == {"bursts"}
    assert {row["round"] for row in measured} == {*range(ROUNDS_A_SET, 3 * ROUNDS_A_SET)}


def test_rounds_of_a_recording_are_counted_by_load(tmp_path, monkeypatch):
    monkeypatch.setattr(noise.trials, "rows_of_this_machine", lambda rows: rows)
    monkeypatch.setattr(noise.trials, "read", lambda file: [{"experiment": "self-noise-busy-core"}] * (6 * 6 * 4 + 5))
    assert noise._rounds_recorded(tmp_path) == dict.fromkeys(noise.CONDITIONS, 0) | {"busy core": 4}


def test_meetings_share_conditions_until_there_are_enough(measured, tmp_path, monkeypatch):
    monkeypatch.setattr(same.loads, "LOADS", {})
    monkeypatch.setattr(same, "CONDITIONS", {"quiet": 1.0})
    found = same.same(tmp_path, trials.Budget(60.0), count=4)
    assert (found[0]["hits"], found[0]["count"], found[0]["met"]) == (0, 4, True)
    assert 4 * 2 * 2 <= len(measured) <= 4 * 2 * 12, "of four comparisons both names, to the end of their rounds"
    done = len(measured)
    assert same.same(tmp_path, trials.Budget(60.0), count=4)[0]["count"] == 4
    assert len(measured) == done


@pytest.mark.parametrize(
    ("slower", "right"),
    [
        (lambda configuration: 2.6 if configuration.gradient == "fused" else 1.0, 8),
        (lambda configuration: 9.0 if configuration.gradient == "fused" else 1.0, 6),
        (lambda configuration: 1.0, 6),
        (lambda configuration: 2.6 if configuration.format == "csr" else 1.0, 4),
    ],
)
def test_a_slower_kernel_must_move_its_own_configurations_and_no_others(measured, tmp_path, monkeypatch, slower, right):
    jitter = lambda task: 1 + 0.001 * (task.round % 3)  # noqa: E731
    seconds = lambda task, work: jitter(task) * (slower(task.configuration) if work == slow.WORK else 1.0)  # noqa: E731
    monkeypatch.setattr(Measured, "seconds", staticmethod(seconds))
    found = slow.slow(tmp_path, trials.Budget(0.0))
    assert len(found) == 9
    assert (found[-1]["hits"], found[-1]["count"], found[-1]["met"]) == (right, 8, right == 8)
    assert sum(row["met"] for row in found[:-1]) == right


def test_a_slowed_call_returns_what_it_did_after_several_times_the_time():
    now = [0.0]

    def clock():
        now[0] += 0.25
        return now[0]

    def call(value):
        now[0] += 3.0
        return value + 1

    assert slow.longer(call, clock)(1) == 2
    assert slow.TIMES * 3.25 <= now[0] <= slow.TIMES * 3.25 + 1


def test_only_configurations_that_use_the_kernel_call_it(monkeypatch):
    """What the part takes for granted of its configurations, asked of real trials."""
    calls = []
    kernel = kernels.get(slow.KERNEL)
    original = {twin: getattr(kernel, twin) for twin in ("cpu", "trusted")}

    def counting(call):
        return lambda *args, **options: (calls.append(1), call(*args, **options))[1]

    monkeypatch.setattr(slow, "longer", counting)
    measure = {"seconds_warmup": 0.0, "seconds_sample": 0.0, "seconds_total": 0.0, "samples_least": 1}
    try:
        for name, configuration in list(slow.configurations().items())[:4]:
            small = configuration.model_copy(update={"rows": 128, "features": 64}).model_dump(mode="json")
            calls.clear()
            *_, row = slow.slowed({"cell": small, "measure": measure, "bytes_limit": 2**32})
            assert row["status"] == "ok"
            assert bool(calls) == (trials.candidate_of(row) in slow.USERS), name
    finally:
        for twin, call in original.items():
            object.__setattr__(kernel, twin, call)


def test_a_trial_that_a_load_slows_must_be_flagged(monkeypatch):
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 2)
    configuration = trials.configuration_of("dense", 512, 0.03, threads=2)
    pairs = {"quiet": (1.0, 0.0), "busy core": (4.0, 0.5), "bursts": (4.0, 0.0), "memory traffic": (1.0, 0.0)}
    rows = [
        maker.trial(configuration, load, number, seconds * (1 + 0.001 * (number % 2)), "threshold", busy_others=share)
        for number in range(4)
        for load, (seconds, share) in pairs.items()
    ]
    found = {row["condition"]: row for row in slow.threshold_outcomes(rows)}
    assert [found[load]["met"] for load in ("busy core", "bursts", "memory traffic")] == [True, False, True]
    assert (found["busy core"]["hits"], found["bursts"]["hits"]) == (4, 0)


def test_the_page_begins_with_what_it_means_for_a_reader(tmp_path):
    known = [("coverage", analysis.HELD, load, hits, 200) for load, hits in (("quiet", 190), ("bursts", 186))]
    known += [("calibration", analysis.SURE_IS_RIGHT, "all", 997, 1000), ("power", analysis.EQUALS, "quiet", 1, 200)]
    trials.append(tmp_path, [trials.share_row(*one, (None, None)) for one in known])
    text = reports.write_self_trial(tmp_path).read_text(encoding="utf-8")
    assert (
        "What this means for you: Of 1,000 answers that were stated with more than 99 % certainty, 99.7 % named the "
        "faster side; an interval called 95 % held the true ratio in 93 to 95 % of the cases; of two that are equally "
        "fast one was called faster with that certainty in 0.5 %."
    ) in text


def test_the_page_says_what_is_met_and_what_is_missed(tmp_path):
    trials.append(tmp_path, maker.shares())
    text = reports.write_self_trial(tmp_path).read_text(encoding="utf-8")
    assert "**2 of 3 criteria are met.**" in text
    assert "What this means for you" not in text
    assert "| coverage | holds | recorded | 93 to 97 % | 95.0 % (91.9 to 96.9), 285 of 300 | met |" in text
    assert "| power | decided | recorded | at least 75 % | 50.0 % (40.4 to 59.6), 50 of 100 | missed |" in text
    assert "| same | winner | all | at most 5 % | 3.3 % (1.1 to 9.3), 3 of 90 | met |" in text
    for name in plots.names("self"):
        file = f"{name.replace('_', '-')}.svg"
        assert f"]({file})" in text
        assert "<svg" in (tmp_path / file).read_text(encoding="utf-8")


def test_pages_of_the_same_rows_are_the_same_bytes(tmp_path):
    written = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        trials.append(tmp_path / name, maker.shares())
        reports.write_self_trial(tmp_path / name, command="workbench bench self")
        written.append({file.name: file.read_bytes() for file in (tmp_path / name).glob("*.*") if "self" in file.name})
    charts = [f"{name.replace('_', '-')}.svg" for name in plots.names("self")]
    assert {*charts, "self.md"} <= written[0].keys()
    assert all(written[0][name] == written[1][name] for name in (*charts, "self.md"))


def test_the_newest_outcome_counts():
    rows = [trials.share_row("same", "winner", "all", hits, 100, (None, 0.05), truth=1.0) for hits in (50, 1)]
    (criterion,) = analysis.criteria(store.SELF.frame(rows))
    assert (criterion.met, criterion.measured) == (True, "1.0 % (0.2 to 5.4), 1 of 100")


def test_what_could_not_be_counted_is_a_criterion_that_failed():
    rows = [trials.share_row("same", "winner", "all", 0, 0, (None, 0.05)), trials.ratio_row("slow", "x", "quiet", None)]
    found = analysis.criteria(store.SELF.frame(rows))
    assert [(one.met, one.measured) for one in found] == [
        (None, "There was none that could be counted."),
        (None, "No round has both sides."),
    ]


@pytest.mark.parametrize("name", plots.names("self"))
@pytest.mark.parametrize("rows", [[], maker.shares()[:2], maker.shares()], ids=["none", "few", "all"])
def test_charts_of_the_self_trial_draw_every_frame(name, rows):
    figure, frame = Figure(figsize=(9, 6)), store.SELF.frame(rows)
    assert plots.draw(name, frame, figure).endswith(".")
    figure.draw_without_rendering()
    assert plots.table(name, frame).empty == (not rows or (name == "self_winners" and len(rows) == 2))


def test_parts_run_in_their_order_with_their_share_and_are_stored(monkeypatch, tmp_path):
    seen = []

    def part(name, share):
        def run(folder, budget):
            seen.append((name, budget.seconds))
            return [trials.share_row(name, "x", "y", 1, 2, (None, None))]

        return self_trial.Part(name, share, run)

    monkeypatch.setattr(self_trial, "PARTS", {"slow": part("slow", 0.1), "same": part("same", 0.3)})
    assert [name for name, _ in self_trial.run(["same", "slow"], tmp_path, 100)] == ["slow", "same"]
    assert seen == [("slow", pytest.approx(25)), ("same", pytest.approx(75))]
    assert [row["part"] for row in store.SELF.read(tmp_path)] == ["slow", "same"]


def invoke(*arguments):
    return CliRunner().invoke(cli.app, ["bench", "self", *arguments])


def test_the_help_names_every_part():
    shown = invoke("--help").output
    assert all(name in shown for name in self_trial.PARTS)
    assert "--budget" in shown


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nothing"], "Unknown part of the self-trial 'nothing'. Expected one of: record, constants, coverage"),
        (["coverage", "same"], "Record more first: workbench bench self record"),
    ],
)
def test_wrong_input_is_told_before_anything_is_measured(arguments, text, tmp_path, measured):
    outcome = invoke(*arguments, "--results", str(tmp_path / "here"))
    assert text in str(outcome.exception)
    assert not measured


def test_simulations_from_the_command_line_end_in_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(self_trial.simulations, "ANSWERS", 100)
    for row in maker.recording(14):
        store.append(tmp_path / noise.FILE, row)
    done = invoke("coverage", "calibration", "power", "--results", str(tmp_path))
    assert done.exit_code == 0, done.exception
    assert "self.md" in done.output
    assert json.loads((tmp_path / "machine.json").read_text())["id"] == machine.machine_id()
    assert {row["part"] for row in store.SELF.read(tmp_path)} == {"coverage", "calibration", "power"}


def test_rows_are_kept_without_what_no_part_reads(tmp_path):
    row = maker.trial(CONFIGURATION, "there", 0, 1.0, samples=[1.0] * 20, seconds_update=0.5, versions={"numpy": "2"})
    with trials.Trials(tmp_path / noise.FILE, trials.experiment("noise")) as measured:
        measured.supervisor.do = lambda task: row
        assert measured.measure(trials.task_of(CONFIGURATION, "there", 0)) is row
    (kept,) = trials.read(tmp_path / noise.FILE)
    assert (kept["samples"], kept["versions"]) == (None, None)
    assert {name: kept[name] for name in trials.KEPT} == {name: row[name] for name in trials.KEPT}
    assert trials.group_of(kept) == trials.group_of(row)
