"""The part of the self-trial that asks about files: what counts as right, in time and near, and its files."""

import pytest

import workbench as wb
from workbench.bench.self_trial import answers, trials
from workbench.bench.self_trial.answers import Answered

SPARSE = {"side": "sparse", "ratio": 4.0, "low": 3.0, "high": 5.0}
DENSE = {"side": "dense", "ratio": 0.5, "low": 0.4, "high": 0.6}
NEITHER = {"side": "unknown", "ratio": 1.0, "low": 0.8, "high": 1.2}


def answered(known, condition="quiet", seconds=10.0):
    return Answered("x.svm", condition, known["side"], known["ratio"], known["low"], known["high"], seconds)


@pytest.mark.parametrize(
    ("known", "judge", "is_right"),
    [
        (SPARSE, SPARSE, True),
        (DENSE, SPARSE, False),
        (NEITHER, SPARSE, False),
        (NEITHER, NEITHER, True),
        ({**SPARSE, "low": 1.1}, NEITHER, True),
        (SPARSE, NEITHER, False),
        ({**SPARSE, "ratio": None, "side": "unknown"}, NEITHER, False),
    ],
)
def test_an_answer_is_right_that_names_the_side_of_the_sweep(known, judge, is_right):
    assert answers.is_right(answered(known), answered(judge)) == is_right


@pytest.mark.parametrize(("ratio", "is_near"), [(4.0, True), (5.1, True), (3.1, True), (5.3, False), (None, False)])
def test_a_factor_is_near_within_thirty_percent(ratio, is_near):
    assert answers.is_near(answered({**SPARSE, "ratio": ratio}), answered(SPARSE)) == is_near


def test_files_are_asked_about_and_counted(tmp_path, monkeypatch):
    asked = []

    def run(*words):
        asked.append(words[0])
        if words[0] == "sweep":
            return [{**DENSE, "measure": "memory"}, {**SPARSE, "measure": "time"}], 60.0
        return (SPARSE, 12.0) if len(asked) == 2 else ({**DENSE, "high": None}, 50.0)

    monkeypatch.setattr(answers, "_run", run)
    rows = answers.answers(tmp_path, trials.Budget(0.0))
    assert asked == ["sweep", "advise", "advise"]
    assert [row["ratio"] for row in rows[:3]] == [4.0, 4.0, 0.5]
    assert rows[2]["high"] == 0.5, "an end that is not known is the ratio"
    counts = {(row["what"], row["condition"]): (row["hits"], row["count"], row["met"]) for row in rows[3:]}
    assert counts == {
        ("the side is that of a longer sweep", "quiet"): (1, 1, True),
        ("the side is that of a longer sweep", "busy core"): (0, 1, False),
        ("the answer came within 45 s", "quiet"): (1, 1, True),
        ("the answer came within 45 s", "busy core"): (0, 1, False),
        ("the factor is within 1.3 of a longer sweep's", "quiet"): (1, 1, True),
    }


def test_a_command_that_fails_is_told(tmp_path):
    with pytest.raises(trials.SelfTrialError, match=r"workbench advise .*nowhere"):
        answers.run_advise(tmp_path / "nowhere.svm", "quiet")


@pytest.mark.parametrize("name", ["table.svm", "clicks.tsv"])
def test_a_file_is_drawn_from_its_seed_and_can_be_read(tmp_path, monkeypatch, name):
    first, second, other = (tmp_path / str(place) / name for place in range(3))
    for path, seed in ((first, 0), (second, 0), (other, 1)):
        path.parent.mkdir()
        answers.FILES[name](path, seed)
    assert first.read_bytes() == second.read_bytes() != other.read_bytes()
    loaded = wb.load(first)
    assert loaded.rows == {"table.svm": 6_000, "clicks.tsv": 20_000}[name]


def test_each_command_runs_in_a_folder_of_its_own(tmp_path, monkeypatch):
    homes = []

    def ended(command, cwd, **_):
        homes.append(cwd)
        return answers.subprocess.CompletedProcess(command, 0, stdout="{}", stderr="")

    monkeypatch.setattr(answers.subprocess, "run", ended)
    for load in answers.CONDITIONS:
        answers.run_advise(tmp_path / "x.svm", load)
    assert len({*homes, str(tmp_path)}) == 3
