"""Text from rows that no page can hold as it is: halves of characters, control characters, and very much of it."""

import json
import random

import pytest

from tests.reports.test_report import GIVEN, Page
from tests.support import rows as maker
from workbench import store
from workbench.reports import export, report
from workbench.reports.page import LONGEST, written

UGLY = "a\ud800b\udfff \x00\x07\x1b[31m\x85 \u202eleft\u2066 \uffff"
LONG = "".join(random.Random(0).choices("abc|`*\\\U0001f600é<>&", k=50_000))

TEXTS = ("dataset", "reason", "model", "optimizer", "gpu", "machine", "blas", "source", "format", "status")


def spoilt(text, columns):
    """Rows that hold the text, each in another form, in some of their columns, and one without a result."""
    made = [dict(row) for row in maker.sweep(densities=(0.01, 0.1, 0.3))]
    for number, row in enumerate(made):
        for column in columns:
            if column != "status" and isinstance(row.get(column), str):
                row[column] = f"{row[column]}{text}"
        row["versions"] = {f"numpy{text}": text, "scipy": text}
        if row["density"] == 0.3:
            row |= {"status": "failed", "reason": f"{number}{text}"}
        row["densified"] = [{"op": text, "shape": [2, 2], "bytes": 10}]
    return store.frame(made)


CASES = {
    "ugly reasons": (UGLY, ("reason",), False),
    "ugly everywhere": (UGLY, TEXTS, True),
    "long reasons": (LONG, ("reason",), False),
    "long everywhere": (LONG[:20_000], TEXTS, True),
}
"""A text, the columns that have it, and whether the page has its pictures: reasons are in none."""


@pytest.mark.parametrize("case", CASES)
def test_no_text_of_a_row_ends_a_report_and_markdown_keeps_its_limit(case, tmp_path, monkeypatch):
    text, columns, has_pictures = CASES[case]
    if not has_pictures:
        monkeypatch.setattr(report, "inline", lambda *_, **__: "")
    given = GIVEN | {"title": f"T {text}", "machine": {f"cpu{text}": text, "caches": {"L3": [text] * 5}}}
    given |= {"command": f"run {text[:4000]}", "spec": text}
    frame = spoilt(text, columns)
    path = report.markdown(frame, tmp_path / "report.md", **given)
    markdown = path.read_text(encoding="utf-8")
    assert len(markdown.encode()) < report.MARKDOWN_BYTES
    assert "## Configurations without a result" in markdown
    report.html(frame, tmp_path / "report.html", **given)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert Page(page).unclosed == []
    assert not set(page + markdown) & set("\x00\x07\x1b\u202e\uffff")


def test_two_long_texts_that_differ_at_the_end_differ_when_they_are_cut():
    one, other = written(LONG + "x"), written(LONG + "y")
    assert one != other
    assert len(one) == len(other) == LONGEST
    assert written({"a\ud800": ["b\x00", 3, None]}) == {"a\ufffd": ["b\ufffd", 3, None]}
    assert written("tab\tline\nend é \U0001f600") == "tab\tline\nend é \U0001f600"


def test_rows_with_halves_of_characters_are_written_as_a_table(tmp_path):
    row = store.new_row(key="a", status="failed", reason=UGLY)
    store.append(tmp_path / "rows.jsonl", row)
    assert "a\ufffdb" in export.write_table(tmp_path / "rows.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "[]", '"x"', "1" * 5000])
def test_a_machine_record_that_is_none_is_refused_in_words(tmp_path, text):
    store.append(tmp_path / "rows.jsonl", store.new_row(key="a", status="failed"))
    (tmp_path / "machine.json").write_text(text)
    with pytest.raises(store.RowError, match=r"machine\.json is"):
        export.write_report(tmp_path / "rows.jsonl")
    (tmp_path / "machine.json").write_text(json.dumps({"cpu": UGLY}))
    assert export.write_report(tmp_path / "rows.jsonl").exists()
