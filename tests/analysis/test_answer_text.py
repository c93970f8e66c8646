"""The words of the answer: training time first, one golden text, no digit that is not known, and its caveats."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.support import rows as made
from tests.support.rows import DENSE, SPARSE
from workbench import store
from workbench.analysis import answer_text, breakeven, formatting
from workbench.analysis.answers import answer_of, letters_of, training_seconds
from workbench.analysis.compare import BOUNDED, HOLDS_ONE, LARGER_BUDGET, PREDICTED, REMEDY, Contest
from workbench.analysis.configurations import line_key
from workbench.analysis.formatting import Ratio
from workbench.analysis.verdict_text import contest_clause, format_ratio

QUICK = replace(SPARSE, gradient="fused", update="lazy", fixed=5e-5, slope=0.06)
SLOW = replace(SPARSE, engine="vendor", gradient="dense", fixed=3e-4, slope=0.3)
HELD_AS_CSR = replace(made.HELD_AS_CSR, fixed=made.DENSE_IN_CALLS.fixed, slope=0.0)


def swept(laws=(DENSE, SPARSE, QUICK, SLOW), density=0.01, noise=0.03, is_natural=True, **known) -> list[dict]:
    rows = made.sweep(laws, (density,), noise=noise, **{"rows_trained": 16_000} | known)
    rows = [row | {"density": None if is_natural else density} for row in rows]
    return [row | {"key": made.key_of(row)} for row in rows]


def answered(rows):
    return answer_of(store.frame(rows))


def text_of(rows, **options):
    return answer_text(store.frame(rows), **options)


GOLDEN = """\
Go sparse. 20 epochs of the data take 820 ms sparse, 10 s dense (12 times faster).
Peak memory: 13 to 15 MB sparse, 100 MB dense (sparse, 6.5 to 7.9 times less).
A step of 256 rows at the data's density, 1 %: S1 650 µs, D1 8 ms; 40 rounds.
S1: sparse, lazy, fused gradient
D1: dense
  sparse: rows are kept as CSR, and a step computes with the stored entries
  dense: rows are kept as a dense array
  lazy: a step updates only the weights of columns that its batch has
  fused gradient: gradient and update are one pass
- A batch"""


def test_a_text_has_training_time_first_then_memory_the_step_and_what_names_mean():
    text = str(text_of(swept((DENSE, QUICK), noise=0.001, rounds=40)))
    assert text.splitlines() == GOLDEN.splitlines()[:-1]


def test_as_html_every_text_is_escaped_and_said_once():
    html = replace(text_of(swept()), advice="Go <sparse>", caveats=("<b>",)).html
    assert "Go &lt;sparse&gt;." in html
    assert "<li>&lt;b&gt;</li>" in html
    assert html.count("epochs of the data") == 1


def test_times_are_those_of_the_epochs_asked_for():
    answer = answered(swept())
    steps = -(-16_000 // 256)
    for epochs in (20, 3):
        row = answer.time.sparse
        known = replace(answer, epochs=epochs).seconds["sparse"]
        assert known == training_seconds(row, epochs)
        assert known.value == pytest.approx(epochs * steps * QUICK.seconds(0.01), rel=0.1)
    assert text_of(swept(), epochs=3).time.startswith("3 epochs of the data take ")
    assert answer.facts["seconds"]["sparse"] == pytest.approx(answer.seconds["sparse"].value)


def test_the_best_of_each_side_has_the_first_letter_and_each_candidate_one_of_its_own():
    answer = answered(swept((DENSE, made.SERIAL, SPARSE, QUICK, SLOW)))
    letters = letters_of(answer.group)
    assert sorted(letters.values()) == ["D1", "D2", "S1", "S2", "S3"]
    assert letters[line_key(answer.time.sparse)] == "S1"
    assert letters[line_key(answer.time.dense)] == "D1"


def test_the_fastest_is_recommended():
    answer = answered(swept())
    assert (answer.verdict, answer.settings["gradient"], answer.settings["update"]) == ("sparse", "fused", "lazy")
    assert answer.time.ratio.low < DENSE.seconds(0.01) / QUICK.seconds(0.01) < answer.time.ratio.high
    assert answer.memory.verdict == "sparse"
    dense = answered(swept(density=0.3))
    assert (dense.verdict, dense.settings["format"]) == ("dense", "dense")
    assert text_of(swept(density=0.3)).advice == "Stay dense"


def test_dense_held_as_csr_is_recommended_if_it_is_as_fast_and_smaller():
    laws = (DENSE, made.DENSE_IN_CALLS, HELD_AS_CSR, made.IN_CALLS)
    answer = answered(swept(laws, density=0.1, noise=0.003, rounds=30))
    assert (answer.verdict, answer.settings["storage"], answer.settings["execution"]) == ("dense", "csr", "epoch")


def test_what_trains_another_model_is_not_recommended():
    exact = replace(QUICK, update="exact")
    answer = answered(swept((DENSE, SPARSE, exact, replace(QUICK, fixed=1e-5, slope=0.01))))
    assert answer.settings["update"] == "exact"


def test_sides_that_cannot_be_told_apart_have_a_bound_on_each_and_what_to_do():
    rows = swept((replace(DENSE, fixed=SPARSE.seconds(0.01) * 1.02), SPARSE), noise=0.5, shared=0.0)
    answer, text = answered(rows), text_of(rows)
    assert answer.verdict == "inconclusive"
    assert text.advice.startswith(("Not decided, take ", "Probably "))
    if text.advice.startswith("Not"):
        ends = re.search(r"either may be faster: sparse up to ([\d.]+) times, dense up to ([\d.]+) times", text.time)
        assert [float(end) for end in ends.groups()] == pytest.approx(
            [answer.time.ratio.high, 1 / answer.time.ratio.low], rel=0.06
        )
    assert any(one.startswith("To decide it: ") for one in text.caveats)


def test_dense_that_does_not_fit_is_told_with_its_bytes():
    rows = [made.unfit(row) if row["format"] == "dense" else row for row in swept()]
    answer = answered(rows)
    assert (answer.verdict, answer.time.source, answer.time.ratio) == ("sparse", "bounded", None)
    assert text_of(rows).time.endswith(" sparse; dense does not run: it needs 82 GB and the limit is 16 GB.")


def test_a_busy_machine_bounds_a_large_factor_and_leaves_a_small_one_likely():
    text = text_of([made.disturbed(row) for row in swept()])
    assert re.search(r"\(at least \d\.\d times faster; other programs were running\)", text.time)
    near = [made.disturbed(row) for row in swept((replace(DENSE, fixed=1.4 * QUICK.seconds(0.01)), QUICK))]
    assert answered(near).time.likely == "sparse"
    assert re.fullmatch(r"Probably sparse \(\d\d %\)", text_of(near).advice)


def test_where_nothing_ran_the_reasons_are_told():
    rows = [made.failed(row, "failed", "OSError: no disk") for row in swept()]
    answer, text = answered(rows), text_of(rows)
    assert (answer.verdict, answer.settings, answer.key) == ("none", None, None)
    assert text.headline == "There is no answer. OSError: no disk."
    assert str(answer_text(store.frame())) == "There is no answer yet. Nothing was measured."
    assert text_of(swept((SPARSE,))).headline == "There is no comparison. Dense was not measured."


def test_of_batches_nearly_as_fast_the_smallest_is_taken_and_a_much_faster_one_is():
    small = swept()
    larger = [replace(law, fixed=4 * law.fixed, slope=4 * law.slope) for law in (DENSE, QUICK)]
    alike, quicker = swept(larger, batch_rows=1024), swept((DENSE, QUICK), batch_rows=1024)
    assert answered(small + alike).settings["batch_rows"] == 256
    assert answered(small + quicker).settings["batch_rows"] == 1024
    assert any("--batch-rows 256 keeps to the smaller one" in one for one in text_of(small + quicker).caveats)


def test_few_rounds_that_are_far_apart_decide_and_others_have_an_interval():
    far, near = answered(swept(rounds=1)), answered(swept((replace(DENSE, fixed=8e-4), QUICK), rounds=1))
    assert (far.verdict, near.verdict) == ("sparse", "inconclusive")
    for one in (far, near):
        assert 0 < one.time.ratio.low < one.time.ratio.value < one.time.ratio.high < 100
        assert one.time.ratio.rounds == 1


def test_the_answer_is_of_the_lowest_density_that_is_decided_of_those_with_most_configurations():
    low, high = swept(is_natural=False), swept(density=0.3, is_natural=False)
    assert answered(low + high).verdict == "sparse"
    assert answered([row for row in low if row["engine"] != "vendor"] + high).verdict == "dense"
    near = swept((replace(DENSE, fixed=6e-4), QUICK), rounds=1, is_natural=False)
    assert answered(near + high).verdict == "dense"


@pytest.mark.parametrize("density", np.geomspace(0.003, 0.3, 5))
def test_the_side_is_right_on_both_sides_of_the_crossing(density):
    truth = min((DENSE, QUICK, SLOW), key=lambda law: law.seconds(density))
    answer = answered(swept((DENSE, QUICK, SLOW), density=float(density), noise=0.02))
    assert answer.settings["format"] == truth.format


@pytest.mark.parametrize(("seconds", "side"), [(5e-5, "dense"), (2e-4, "csr")])
def test_of_a_side_that_had_no_time_the_prediction_decides_which_one_to_take(seconds, side):
    dense = {"seconds_step": None, "seconds_first_step": None, "status": "stopped", "seconds_predicted": seconds}
    rows = [row | ({"seconds_predicted": 1e-4} if row["format"] != "dense" else dense) for row in swept(rounds=1)]
    answer = answered(rows)
    assert (answer.time.source, answer.settings["format"]) == ("predicted", side)
    assert "predicted from the sizes, not measured" in text_of(rows).time


@pytest.mark.parametrize("seed", range(3))
def test_a_larger_batch_that_is_little_faster_is_named(seed):
    rows = [*swept(seed=seed), *swept(seed=seed, batch_rows=1024)]
    large = [
        row | {"seconds_step": 3.6 * row["seconds_step"], "samples": None} for row in rows if row["batch_rows"] == 1024
    ]
    text = text_of([row for row in rows if row["batch_rows"] != 1024] + large)
    assert (
        "A batch of 1,024 rows is faster by less than a quarter; one of 256 rows has more updates an epoch."
        in text.caveats
    )


@pytest.mark.parametrize(("share", "is_other"), [(0.999, False), (0.7, True)])
def test_of_equally_fast_candidates_only_clearly_less_memory_is_preferred(share, is_other):
    rows = swept((DENSE, QUICK, replace(QUICK, gradient="row_sparse")), noise=0.001, rounds=40)
    fastest = answered([row | {"bytes_peak": 10_000_000} for row in rows]).settings["gradient"]
    size = lambda row: int(1e7 * (1 if row["gradient"] == fastest or row["format"] == "dense" else share))  # noqa: E731
    chosen = answered([row | {"bytes_peak": size(row)} for row in rows]).settings["gradient"]
    assert (chosen != fastest) == is_other


def test_predictions_that_do_not_decide_ask_for_a_larger_budget():
    ratio = Ratio(1.0, 0.3, 3.0, 0, 0, 0.5)
    predicted = Contest(0.1, {}, {}, "inconclusive", ratio, HOLDS_ONE, source=PREDICTED)
    assert predicted.remedy == LARGER_BUDGET
    assert predicted._replace(ratio=ratio._replace(rounds=2)).remedy == REMEDY[HOLDS_ONE]
    assert predicted._replace(verdict="sparse", why="").remedy == ""
    assert contest_clause(predicted, "faster").startswith("either may be faster: sparse up to 3 times, dense up to 3.3")


def test_densities_have_a_line_each_with_letters_and_verdicts():
    text = text_of(made.sweep())
    assert [line.density for line in text.densities] == ["0.1 %", "0.3 %", "1 %", "3 %", "10 %", "30 %"]
    first, last = text.densities[0], text.densities[-1]
    assert first.sparse.startswith("✓ S1 ")
    assert last.dense.startswith("✓ D1 ")
    assert (first.time.partition(",")[0], last.time.partition(",")[0]) == ("sparse", "dense")
    assert [float(first.ratios[0].split(" to ")[0]) > 1, float(last.ratios[0].split(" to ")[1]) < 1] == [True, True]
    assert text.break_even == f"The faster side changes {breakeven(store.frame(made.sweep()))[0].place}."


def test_caveats_name_worse_models_dense_arrays_failures_and_hashed_columns():
    caveats = text_of(made.rich()).caveats
    worse = re.compile(r"S\d trained a worse model than dense at 6 densities \(loss 0\.\d+ instead of ")
    assert any(map(worse.match, caveats))
    assert any("makes a dense array of 10.2 MB: dot." in one for one in caveats)
    assert any("3 of 60 configurations have no result" in one and "(no result after 60 s)" in one for one in caveats)
    assert any("There are 2 groups of settings" in one for one in caveats)
    hashed = "The words of the column review are hashed into 65,536 buckets; some share one."
    assert list(text_of(made.sweep(hashed=hashed)).caveats).count(hashed) == 1


@pytest.mark.parametrize("measured", ["csr", "dense"])
def test_times_of_a_measured_and_a_predicted_side_have_the_ratio_that_is_said(measured):
    lost = {"seconds_step": None, "seconds_first_step": None, "status": "stopped", "samples": None}
    rows = [row | {"seconds_predicted": 2e-4 if row["format"] == "dense" else 1e-5} for row in swept(rounds=1)]
    answer = answered([row if row["format"] == measured else row | lost for row in rows])
    assert answer.time.source == PREDICTED
    sparse, dense = (answer.seconds[side].value for side in ("sparse", "dense"))
    assert dense / sparse == pytest.approx(answer.time.ratio.value)


def test_a_trial_that_was_cut_off_with_samples_counts():
    caveats = text_of([made.cut_off(row) for row in swept(rounds=1)]).caveats
    assert any(
        re.match(r"\d of \d configurations had too little time for all samples; those taken", one) for one in caveats
    )
    assert not any("no result" in one for one in caveats)


def test_what_there_was_no_time_for_is_no_failure():
    rows = [made.failed(row, "skipped", "The time was out before it was measured.") for row in made.sweep()]
    caveats = text_of(rows).caveats
    assert any("There was no time to measure 12 of 12 configurations" in one for one in caveats)
    assert not any("no result" in one or "skipped" in one for one in caveats)


def test_a_ratio_in_a_column_is_an_interval_or_a_bound():
    ratio = Ratio(5.0, 4.0, 6.2, 4, 0, 0.99)
    contest = Contest(0.1, {}, {}, "sparse", ratio)
    assert format_ratio(contest) == "4 to 6.2"
    assert format_ratio(contest._replace(source=BOUNDED)) == "≥ 4"
    assert format_ratio(contest._replace(ratio=ratio._replace(high=np.inf))) == "≥ 4"
    below = contest._replace(verdict="dense", ratio=Ratio(0.3, 0.2, 0.41, 4, 0, 0.01))
    assert format_ratio(below._replace(source=BOUNDED)) == "≤ 0.41"
    assert format_ratio(below._replace(ratio=below.ratio._replace(low=0.0))) == "≤ 0.41"
    undecided = contest._replace(verdict="inconclusive", ratio=Ratio(1.1, 0.5, 2.4, 2, 2, 0.6))
    assert format_ratio(undecided) == "0.5 to 2.4"
    assert format_ratio(contest._replace(ratio=None)) == "sparse"


BESIDE_ONE = re.compile(r"1\.0\d|0\.99\d")
"""A factor next to 1 has a third digit, which tells on which side of 1 it is."""


def significant(text):
    """The significant digits of each number of a text, zeros at the end of whole ones left out."""
    found = re.findall(r"\d+(?:\.\d+)?", re.sub(r"(?<=\d),(?=\d{3})", "", text))
    return [number.replace(".", "").lstrip("0").rstrip("" if "." in number else "0") for number in found]


SWEEPS = {
    "rich": made.rich(),
    "noisy": made.sweep(noise=0.3, rounds=6),
    "quiet": made.sweep(noise=0.001, rounds=12),
    "beside others": [made.disturbed(row) for row in made.sweep()],
}


@pytest.mark.parametrize("rows", SWEEPS.values(), ids=SWEEPS)
def test_measured_numbers_have_two_digits_at_most_and_others_three(rows):
    text, frame = text_of(rows), store.frame(rows)
    evens = [even for measure in ("seconds_step", "bytes_peak") for even in breakeven(frame, measure)]
    for sentence in (*str(text).splitlines(), *(even.sentence for even in evens)):
        assert max(map(len, significant(sentence)), default=0) <= 3, sentence
        for ends in re.findall(r"([\d.]+)(?: to ([\d.]+))? times", sentence):
            ends = [end for end in ends if end and not BESIDE_ONE.fullmatch(end)]
            assert all(len(digits) <= 2 for end in ends for digits in significant(end)), sentence
        assert not re.search(r"\binf\b|\bnan\b|None", sentence)
    assert significant("12.34 ms, 0.050 and 1,200") == ["1234", "50", "12"], "the search must be able to find one"


PLACE = re.compile(r"break-even is (?:at ([\d.]+)(?: to ([\d.]+))? %|somewhere between ([\d.]+) % and ([\d.]+) %)")


@pytest.mark.parametrize("rows", SWEEPS.values(), ids=SWEEPS)
def test_a_break_even_has_the_digits_that_its_interval_allows(rows):
    for even in (even for even in breakeven(store.frame(rows)) if even.status == "crossing"):
        ends = [float(end) / 100 for end in PLACE.search(even.sentence).groups() if end]
        assert len(ends) == (1 if even.high < 1.1 * even.low else 2)
        assert even.is_range == ("somewhere" in even.sentence)
        assert ends[0] == pytest.approx(even.low, rel=0.12)
        assert ends[-1] == pytest.approx(even.high, rel=0.12)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.02, 1.98, "1.02 to 2 times"),
        (1.04, 2.1, "1.04 to 2 times"),
        (0.97, 1.04, "0.97 to 1.04 times"),
        (0.98, 2.3, "0.98 to 2 times"),
        (0.9999, 2.3, "1 to 2 times"),
        (1.1, 1.7, "1.1 to 1.7 times"),
    ],
)
def test_an_end_next_to_1_tells_on_which_side_it_is(low, high, expected):
    assert formatting.format_times(Ratio((low + high) / 2, low, high)) == expected
    assert formatting.format_gain(formatting.invert_ratio(Ratio((low + high) / 2, low, high))) == expected


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"format": "dense"}, "dense"),
        ({"format": "dense", "storage": "uint8", "execution": "epoch"}, "dense from uint8 batches, whole epochs"),
        ({"format": "dense", "storage": "csr", "device": "cuda"}, "dense from CSR batches on cuda"),
        (
            {"format": "csr", "update": "exact", "execution": "dual", "trainers": 2},
            "sparse, exact, dual ascent, 2 trainers",
        ),
        (
            {"format": "csc", "engine": "vendor", "gradient": "dense", "index_dtype": "int64"},
            "sparse CSC, SciPy, dense gradient, 64-bit indices",
        ),
    ],
)
def test_a_configuration_has_a_plain_name(row, name):
    usual = {"engine": "ours", "gradient": "row_sparse", "update": "standard"}
    assert formatting.name_configuration(usual | row) == name
    assert all(term in name for term, _ in formatting.legend([usual | row]))
