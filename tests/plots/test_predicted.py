"""The chart of predictions: what was left out, how near half of them come, what is extrapolated; as a file, too."""

import math

import pytest

from tests.advising.test_cost_model import swept
from workbench.command import predicting
from workbench.plots import predicted as chart
from workbench.reports import results
from workbench.reports.export import ExportError

SHOWN = {"index_dtype": "int32", "density_measured": 0.01}


def frame_of(**more):
    return predicting.predicted_records([row | SHOWN | more for row in swept(noise=0.1)])


def test_data_sets_are_left_out_and_sizes_beyond_the_others_are_extrapolated():
    frame = frame_of()
    assert set(frame["left_out"]) == {"data set"}
    assert len(frame) == len(swept())
    beyond = frame[frame["is_extrapolated"]]
    assert {"set 1024", "set 16384"} <= {name.split(",")[0] for name in beyond["data"]}
    assert 0 < len(beyond) < len(frame)


def test_with_one_data_set_alone_rows_are_left_out():
    frame = frame_of(dataset="one", features=4096)
    assert set(frame["left_out"]) == {"row"}


def test_the_sentence_has_the_medians_and_the_worst(tmp_path):
    frame = frame_of()
    sentence = results.write(frame, tmp_path / "a.svg")
    off = (frame["seconds_predicted"] / frame["seconds"]).map(math.log).abs()
    near = math.exp(off[~frame["is_extrapolated"]].median())
    assert f"within the sizes fitted are within {near:.3g} times" in sentence
    assert f"{math.exp(off.max()):.2g} times off" in sentence
    text = (tmp_path / "a.svg").read_text()
    assert "<svg" in text
    results.write(frame, tmp_path / "a.csv")
    assert len((tmp_path / "a.csv").read_text().splitlines()) == len(frame) + 1


def test_another_kind_of_file_is_refused_and_no_prediction_is_said_to_be_none(tmp_path):
    with pytest.raises(ExportError, match=r"may end in \.svg, \.png, \.csv"):
        results.write(frame_of(), tmp_path / "a.gif")
    assert chart.table(frame_of().iloc[:0]).empty
