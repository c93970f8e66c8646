"""The words of the advice: the answer, how sure it is, nothing that rows do not bear, no digit that is not known."""

import re
from dataclasses import replace

import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import advise, advisor, breakeven, configurations, contests, formatting
from workbench.analysis.formatting import format_number
from workbench.measure.rounds import Ratio

DENSE, SERIAL, SPARSE = maker.DENSE, maker.SERIAL, maker.SPARSE
ALIKE = replace(SPARSE, fixed=8e-3, slope=0.0)


def frame(*laws, **known):
    return store.frame(maker.sweep(laws or (DENSE, SPARSE), **known))


def test_the_verdict_comes_first_how_sure_it_is_second_and_time_is_apart_from_memory():
    advice = advise(frame())
    assert advice.sentences[:2] == (advice.verdict, advice.certainty)
    assert re.match(
        r"For time, go sparse up to 3 % density: 40 \(95 %: 36 to 45\) times faster than dense at 0.1 %, with CSR ours",
        advice.verdict,
    )
    (even,) = breakeven(frame())
    assert even.low < maker.crossing() < even.high < 2 * even.low
    assert f"From 10 % on, stay dense. The break-even is {even.place}." in advice.verdict
    assert "For memory, go sparse up to 10 % density" in advice.verdict
    assert any("dense beats the best sparse" in sentence for sentence in advice.time)


def test_how_sure_it_is_tells_rounds_runs_the_interval_what_could_be_seen_and_what_was_left_out():
    rows = [maker.disturbed(row) if row["round"] == 5 else row for row in maker.sweep(rounds=6, noise=0.1)]
    rows += maker.sweep(rounds=4, run="r2", seed=4, noise=0.1)
    result = advise(store.frame(rows)).certainty
    for part in (
        r"from 10 rounds of 2 runs\.",
        r"How sure: 95 % intervals from",
        r"Differences from 1\.\d times on could be detected at every density",
        r"Other programs ran next to 10 % of the trials, which count for less\.",
    ):
        assert re.search(part, result), (part, result)


def test_the_smallest_difference_that_could_be_seen_is_told_by_density():
    rows = maker.sweep(noise=0.05, rounds=9)
    wild = maker.sweep(densities=(0.003,), noise=0.4, rounds=9)
    (group,) = configurations.groups(store.frame([row for row in rows if row["density"] != 0.003] + wild))
    found = contests(group.rows, "seconds_step")
    result = advisor.minimum_detectable_sentence(found)
    worst = max(one.minimum_detectable_ratio for one in found)
    assert re.fullmatch(
        rf"differences from 1\.\d+ times on could be detected at most densities, from {format_number(worst, 2)} "
        rf"times at 0\.3 %",
        result,
    )


def test_what_is_inconclusive_says_what_a_wrong_choice_would_cost_at_most():
    text = advise(frame(DENSE, ALIKE, noise=0.2)).time[0]
    low, high, cost = map(float, re.search(
        r"inconclusive: dense takes ([\d.]+) to ([\d.]+) times as long; choosing sparse takes at most ([\d.]+)", text
    ).groups())  # fmt: skip
    assert low < 1 < cost < high
    assert "To decide it: more rounds, or a quieter machine" in text


def test_one_round_decides_what_is_far_apart_and_leaves_the_rest_open():
    advice = advise(frame(rounds=1))
    assert re.match(r"For time, go sparse up to 3 % density: \d\d \(95 %: 2\d to [67]\d\) times faster", advice.verdict)
    assert "From 30 % on, stay dense." in advice.verdict
    assert re.search(r"Probably (sparse|dense) at 10 % \([89]\d %\)\.", advice.verdict)
    assert "How sure: 95 % intervals from 1 round of 1 run." in advice.certainty
    assert "For memory, go sparse up to 10 % density" in advice.verdict
    assert not [
        sentence
        for sentence in advise(frame(DENSE, ALIKE, rounds=1)).sentences
        if "faster" in sentence and "time" in sentence
    ]


def test_a_prediction_is_not_called_an_interval_of_rounds(monkeypatch):
    [group] = configurations.groups(frame(rounds=1))
    found = advisor.contests_of_group(group, "seconds_step")
    predicted = [one._replace(ratio=one.ratio._replace(rounds=0, runs=0)) for one in found]
    monkeypatch.setattr(advisor, "contests_of_group", lambda *_: predicted)
    sure = advisor.certainty_sentences(group)
    assert sure == "How sure: no round measured both sides; the interval is that of a prediction from the sizes."


def test_where_dense_wins_or_nothing_is_decided_it_says_so_plainly():
    assert "For time, stay dense: no sparse" in advise(frame(DENSE, replace(SPARSE, fixed=0.1))).verdict
    level = advise(frame(DENSE, ALIKE, noise=0.01, rounds=30))
    assert "For time sparse and dense are equal (within 10 %) at every density, from 0.1 to 30 %." in level.verdict
    assert "no difference that matters (0.9" in level.time[0]
    same = advise(frame(DENSE, ALIKE, noise=0.2))
    assert re.match(r"For time no density has a certain winner\. Probably (sparse|dense) at ", same.verdict)
    assert "Inconclusive from 0.1 to 1 % and at 30 %: neither is significantly better. To decide it: " in same.verdict
    unknown = advise(frame(DENSE, ALIKE, noise=0.2, seed=4, densities=(0.01, 0.1)))
    assert "For time it is inconclusive at every density, from 1 to 10 %: neither" in unknown.verdict
    rows = [maker.unfit(row) if row["format"] == "dense" else row for row in maker.sweep()]
    assert "it runs where dense needs 82 GB and the limit is 16 GB" in advise(store.frame(rows)).verdict
    assert advise(store.frame()).sentences == ("There is no answer yet: no rows were given.",)
    assert "dense was not measured" in advise(frame(SPARSE)).verdict


def test_a_loss_at_some_densities_is_no_loss_at_those_that_are_inconclusive():
    rows = maker.sweep((DENSE, replace(SPARSE, fixed=0.1)), maker.DENSITIES[3:])
    rows += maker.sweep((DENSE, ALIKE), maker.DENSITIES[:3])
    verdict = advise(store.frame(rows)).verdict
    assert "For time, stay dense: dense wins from 3 to 30 %. Probably dense at 0.1 % (" in verdict
    assert "Inconclusive from 0.3 to 1 %: neither" in verdict
    assert "no sparse configuration" not in verdict


def test_disturbed_rows_make_a_winner_only_where_it_is_far_ahead_and_bound_its_factor():
    slower = replace(maker.SPARSE, fixed=5.5 * maker.SPARSE.fixed, slope=5.5 * maker.SPARSE.slope)
    rows = [maker.disturbed(row) for row in maker.sweep([maker.DENSE, slower])]
    advice = advise(store.frame(rows))
    assert re.match(
        r"For time, go sparse up to 0\.3 % density: at least [3-6](\.\d)? times faster than dense at 0\.1 % "
        r"\(other programs were running\), with CSR ours",
        advice.verdict,
    )
    assert "From 3 % on, stay dense. The break-even is somewhere between " in advice.verdict
    assert re.search(r"\. Probably sparse at 1 % \(9\d %\)\.", advice.verdict)
    without = [re.sub(r"at least [\d.]+ times faster|probably faster", "", sentence) for sentence in advice.sentences]
    assert not [one for one in without if "faster" in one]
    (likely, *_) = (one for one in advice.time if "probably faster" in one)
    assert re.match(r"At 1 % density sparse is probably faster, \d(\.\d)? times \(9\d %\): CSR", likely)
    assert "For memory, go sparse" in advice.verdict
    assert "Other programs ran next to 100 % of the trials, which count for less." in advice.certainty
    quiet = advise(frame())
    assert not any("other programs" in sentence for sentence in quiet.sentences)
    one = [maker.disturbed(row) if row["round"] == 0 else row for row in maker.sweep(rounds=5)]
    advice = advise(store.frame(one))
    assert "Other programs ran next to 20 % of the trials" in advice.certainty
    assert not any("other programs" in text for text in advice.warnings)  # once is enough


def test_what_is_sure_of_the_first_group_is_not_said_of_the_others():
    first = maker.sweep(rounds=5)
    second = [maker.disturbed(row) if row["round"] == 0 else row for row in maker.sweep(rounds=5, batch_rows=64)]
    advice = advise(store.frame(first + second))
    assert "ther programs" not in advice.certainty
    assert "12 of 120 trials ran next to other programs; they count for less" in " ".join(advice.warnings)


@pytest.mark.parametrize("left", [1, 2, 3])
def test_what_is_left_of_disturbed_rounds_is_told_in_finite_numbers(left):
    rows = [maker.disturbed(row) if row["round"] >= left and row["density"] < 0.1 else row for row in maker.sweep()]
    advice = advise(store.frame(rows))
    assert not [result for result in advice.sentences if re.search(r"\binf\b|\bnan\b|None", result)]
    assert advice.verdict.startswith("For time, go sparse ")
    share = 100 * 4 * 2 * (4 - left) / len(rows)
    assert f"Other programs ran next to {share:.2g} % of the trials" in advice.certainty


def test_dense_on_one_thread_is_named_where_it_is_the_one_to_beat():
    advice = advise(frame(replace(DENSE, fixed=16e-3), replace(SERIAL, fixed=4e-3), SPARSE))
    assert "times faster than dense, 1 thread at 0.1 %" in advice.verdict
    assert any("dense, 1 thread beats the best sparse" in sentence for sentence in advice.time)


def test_a_lazy_update_that_trains_worse_is_named_and_does_not_win():
    lazy = replace(SPARSE, update="lazy", fixed=1e-5, slope=0.01)
    worse = advise(frame(DENSE, SPARSE, replace(lazy, loss_last=0.4)))
    assert "lazy" not in worse.verdict
    assert any("trained a worse model" in sentence and "0.4 instead of 0.35" in sentence for sentence in worse.warnings)
    assert "lazy update" in advise(frame(DENSE, SPARSE, lazy)).verdict


def test_where_every_sparse_configuration_trained_worse_that_is_the_reason():
    advice = advise(frame(DENSE, replace(SPARSE, update="lazy", loss_last=0.4)))
    assert "(every sparse configuration trained a worse model)" in advice.verdict
    (even, *_) = breakeven(frame(DENSE, replace(SPARSE, update="lazy", loss_last=0.4)))
    assert even.sentence.endswith("; it trained a worse model, so this is no win.")


def test_warnings_and_failures_are_told():
    advice = advise(store.frame(maker.rich()))
    assert any("made a dense array in dot (10.2 MB)" in sentence for sentence in advice.warnings)
    assert "3 of 60 configurations have no result" in advice.failures[0]
    assert "1 timeout (no result after 60 s)" in advice.failures[0]
    prepared = advise(frame(seconds_slice=0.0, seconds_convert=0.0, seconds_plan=0.0, seconds_prepare=1e-3))
    assert any("Batches repeat" in sentence for sentence in prepared.warnings)


def test_hashed_columns_are_said_once():
    said = "The words of the column review are hashed into 65,536 buckets; some share one."
    assert list(advise(frame(hashed=said)).warnings).count(said) == 1
    assert said not in advise(frame()).warnings


BESIDE_ONE = re.compile(r"1\.0\d|0\.99\d")
"""A factor next to 1 has a third digit, which tells on which side of 1 it is."""


def significant(text):
    """The significant digits of each number of a text, zeros at the end of whole ones left out."""
    found = re.findall(r"\d+(?:\.\d+)?", re.sub(r"(?<=\d),(?=\d{3})", "", text))
    return [number.replace(".", "").lstrip("0").rstrip("" if "." in number else "0") for number in found]


def said(rows):
    advice = advise(store.frame(rows))
    evens = [even for measure in ("seconds_step", "bytes_peak") for even in breakeven(store.frame(rows), measure)]
    return advice, evens


SWEEPS = {
    "rich": maker.rich(),
    "noisy": maker.sweep(noise=0.3, rounds=6),
    "quiet": maker.sweep(noise=0.001, rounds=12),
    "two rounds": maker.sweep(rounds=2),
    "beside others": [maker.disturbed(row) for row in maker.sweep()],
}


@pytest.mark.parametrize("rows", SWEEPS.values(), ids=SWEEPS)
def test_measured_numbers_have_two_digits_at_most_and_others_three(rows):
    advice, evens = said(rows)
    for sentence in (*advice.sentences, *(even.sentence for even in evens)):
        assert max(map(len, significant(sentence)), default=0) <= 3, sentence
    factors = re.compile(r"([\d.]+)(?: to ([\d.]+))? times")
    for sentence in (*advice.sentences, *(even.sentence for even in evens)):
        for ends in factors.findall(sentence):
            ends = [end for end in ends if end and not BESIDE_ONE.fullmatch(end)]
            assert all(len(digits) <= 2 for end in ends for digits in significant(end)), sentence
    assert significant("12.34 ms, 0.050 and 1,200") == ["1234", "50", "12"], "the search must be able to find one"


PLACE = re.compile(r"break-even is (?:at ([\d.]+)(?: to ([\d.]+))? %|somewhere between ([\d.]+) % and ([\d.]+) %)")


@pytest.mark.parametrize("rows", SWEEPS.values(), ids=SWEEPS)
def test_a_break_even_has_the_digits_that_its_interval_allows(rows):
    _, evens = said(rows)
    for even in (even for even in evens if even.status == "crossing"):
        ends = [float(end) / 100 for end in PLACE.search(even.sentence).groups() if end]
        assert len(ends) == (1 if even.high < 1.1 * even.low else 2)
        assert even.is_range == ("somewhere" in even.sentence)
        assert ends[0] == pytest.approx(even.low, rel=0.12)
        assert ends[-1] == pytest.approx(even.high, rel=0.12)


@pytest.mark.parametrize("rows", SWEEPS.values(), ids=SWEEPS)
def test_one_cell_has_one_number_in_every_sentence(rows):
    (group, *_), (advice, _) = configurations.groups(store.frame(rows)), said(rows)
    first = next((contest for contest in contests(group.rows, "seconds_step") if contest.verdict == "sparse"), None)
    assert first is not None
    factor = re.search(r": ((?:at least )?[\d.]+(?: \([^)]*\))? times faster)", advice.verdict).group(1)
    assert factor in advice.time[0]
    ends = [float(end) for end in re.findall(r"[\d.]+", factor.replace("95 %", ""))]
    known = [first.ratio.low] if first.is_beside_others else [*first.ratio[:3]]
    assert ends == pytest.approx(known[: len(ends)], rel=0.06)


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
