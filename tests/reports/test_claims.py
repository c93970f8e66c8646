"""Every sentence, label and table of reports and charts is read back and checked against the rows it was made from."""

import re
from dataclasses import replace
from functools import cache
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from matplotlib.figure import Figure

from tests.support import rows as maker
from tests.support.claims import LIKELY, WINNER, Blocks, markdown_tables
from tests.support.facts import Facts
from workbench import plots, store
from workbench.panels import pages
from workbench.reports import report

GIVEN = {"title": "Known law", "command": "workbench sweep spec.json", "machine": {}}
SAME = replace(maker.DENSE, format="csr", engine="ours", gradient="row_sparse")
NEARLY = replace(maker.SPARSE, fixed=6e-3, slope=0.01)
APART, CLOSE = (0.001, 0.003), (0.001, 0.03, 0.1)
"""Densities at which sparse takes far less time than dense, and some at which it is close."""
KINDS = {
    "clear": maker.sweep((maker.DENSE, maker.SERIAL, maker.SPARSE), noise=0.01),
    "A/A": maker.sweep((maker.DENSE, SAME), noise=0.2),
    "disturbed": [maker.disturbed(row) for row in maker.sweep((maker.DENSE, SAME))],
    "two rounds": maker.sweep((maker.DENSE, SAME), rounds=2),
    "one round": maker.sweep((maker.DENSE, maker.SPARSE), CLOSE, rounds=1),
    "far apart next to other programs": [maker.disturbed(row) for row in maker.sweep(densities=APART, noise=0.01)],
    "some of it disturbed": [maker.disturbed(row) if row["round"] % 2 else row
                             for row in maker.sweep(densities=CLOSE, noise=0.1)],
    "likely": maker.sweep((maker.DENSE, NEARLY), CLOSE, rounds=1, noise=0.02),
    "dense cut off": [maker.cut_off(row) if row["format"] == "dense" else row for row in maker.sweep(densities=APART)],
    "the data's own density": [row | {"density": None} for row in maker.sweep(densities=(0.05,))],
    "some of it the data's own": [row | {"density": row["density"] if row["density"] != 0.01 else None}
                                  for row in maker.sweep((maker.DENSE, maker.SERIAL, maker.SPARSE))],
    "one density": maker.sweep((maker.DENSE, maker.SERIAL, maker.SPARSE), (0.03,)),
    "several groups": [*maker.sweep(), *maker.sweep(width=64, noise=0.3, seed=3)],
    "dense unfit": [maker.unfit(row) if row["format"] == "dense" else row for row in maker.sweep()],
    "failed cells": maker.rich(),
    "several dense candidates": maker.sweep(maker.BOTH_AT_THEIR_BEST, noise=0.01),
    "one side in one call": maker.sweep((maker.DENSE, maker.SPARSE, maker.IN_CALLS), noise=0.01),
}  # fmt: skip
INCONCLUSIVE = ("A/A", "disturbed", "two rounds")
"""Kinds of which neither time nor memory has a winner."""
SKIPPED = ("Columns of a row", "Machine", "Versions")
"""Tables that say nothing of what was measured."""
ABOUT = re.compile(r"<header>.*?</header>", re.DOTALL)
"""Data set, model, machine and date."""
METHOD = re.compile(r'<details class="section" id="method">.*(?=</main>)', re.DOTALL)
"""The method, and after it the rows themselves."""
RULE = "A side is called better if"
"""The start of the rule in the method, which names no winner."""


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@cache
def frame_of(kind):
    """The rows of a kind as a table, which nothing changes."""
    return store.frame(KINDS[kind])


@cache
def facts_of(kind):
    """What the rows of a kind bear."""
    return Facts.of(KINDS[kind])


@cache
def written(kind):
    """The HTML and the Markdown report of a kind of rows; without pictures, which say no more and take long."""
    frame = frame_of(kind)
    with TemporaryDirectory() as folder, patch.object(report, "inline", return_value=""):
        html = report.html(frame, f"{folder}/report.html", **GIVEN).read_text(encoding="utf-8")
        return html, report.markdown(frame, f"{folder}/report.md", **GIVEN).read_text(encoding="utf-8")


@cache
def panel_verdict(kind):
    """The verdict of the panel."""
    return pages.verdict(frame_of(kind))


@cache
def drawn(name, kind):
    """The sentence of a chart, its title, subtitle and notes, and its legend."""
    figure = Figure(figsize=(9, 6))
    sentence = plots.draw(name, frame_of(kind), figure)
    axes = figure.axes[0]
    legends = [text for legend in figure.legends for text in legend.get_texts()]
    said = [figure.get_suptitle(), axes.get_title(loc="left"), *(text.get_text() for text in (*axes.texts, *legends))]
    return [sentence, *(" ".join(text.split()) for text in said)]


def density_of(configuration):
    """The density that a table names, as numbers that facts know."""
    return {float(configuration.removesuffix(" %")) / 100} if configuration.endswith(" %") else set()


def table_faults(facts, table):
    """Faults of the rows of a table, each read with the configuration and the density it is of."""
    head, *rows = table
    at = head.index("density") if "density" in head else None
    return [
        fault
        for row in rows
        for configuration in row[1:]
        for fault in facts.faults(f"{row[0]}: {configuration}", density_of(row[at]) if at is not None else ())
    ]


def page_faults(html, facts):
    """Faults of a page: of its blocks of text, and of its tables."""
    page = Blocks(METHOD.sub("", ABOUT.sub("", html)))
    texts = [text for tag, text in page.blocks if tag not in ("title", "summary")]
    tables = [rows for caption, rows in page.tables if caption not in SKIPPED]
    in_texts = [fault for text in texts for fault in facts.faults(text)]
    return in_texts + [fault for table in tables for fault in table_faults(facts, table)]


def markdown_faults(text, facts):
    """Faults of a Markdown report, without its method and what follows."""
    text = text.partition("## How it was measured")[0].replace("\\", "")
    lines = [line.strip("-* ") for line in text.splitlines() if not line.startswith(("|", "#"))]
    in_lines = [fault for line in lines for fault in facts.faults(line)]
    return in_lines + [fault for table in markdown_tables(text) for fault in table_faults(facts, table)]


def test_every_number_and_winner_of_the_reports_is_borne_by_the_rows(kind):
    html, markdown = written(kind)
    assert page_faults(html, facts_of(kind)) == []
    assert markdown_faults(markdown, facts_of(kind)) == []


@pytest.mark.covering(targets=lambda case: {case["kind"], case["name"]})  # reports have the sentences of all charts
@pytest.mark.parametrize("name", plots.names())
def test_every_number_and_winner_of_a_chart_is_borne_by_the_rows(kind, name):
    facts = facts_of(kind)
    assert [fault for text in drawn(name, kind) for fault in facts.faults(text)] == []
    table = plots.table(name, frame_of(kind))
    assert table_faults(facts, [list(table.columns), *table.astype(str).to_numpy().tolist()]) == []


def test_every_number_and_winner_of_the_panel_is_borne_by_the_rows(kind):
    frame = frame_of(kind)
    page = panel_verdict(kind) + pages.grounds(frame) + pages.break_evens(frame)
    assert page_faults(page, facts_of(kind)) == []


@pytest.mark.parametrize("kind", INCONCLUSIVE)
def test_without_a_decision_no_winner_is_named_anywhere(kind):
    assert {winner for contest in facts_of(kind).contests for winner in (contest.time, contest.memory)} <= {
        "inconclusive",
        "level",
    }
    html, markdown = written(kind)
    page = Blocks(html)
    texts = [text for _, text in page.blocks] + [
        configuration for _, table in page.tables for row in table for configuration in row
    ]
    texts += [*markdown.splitlines(), *(text for name in plots.names() for text in drawn(name, kind))]
    assert [text for text in texts if WINNER.search(LIKELY.sub("", text)) and RULE not in text] == []


@pytest.mark.parametrize("kind", ["disturbed", "far apart next to other programs"])
def test_what_ran_beside_other_programs_is_said_to_everywhere(kind):
    busy = re.compile(r"[Oo]ther programs (ran|were running)|next to other programs")
    html, markdown = written(kind)
    sure = next(text for _, text in Blocks(html).blocks if text.startswith("How sure: "))
    (again,) = (line for line in markdown.splitlines() if line.startswith("How sure: "))
    for text in (sure, again, panel_verdict(kind)):
        assert busy.search(text)
    for name in ("time_density", "phases", "loss_seconds"):
        assert any("next to other programs" in text for text in drawn(name, kind)), name


def test_what_is_far_apart_beside_other_programs_has_a_winner_and_the_least_factor():
    kind = "far apart next to other programs"
    assert {contest.time for contest in facts_of(kind).contests} == {"sparse"}
    for text in (*written(kind), panel_verdict(kind)):
        text = " ".join(text.split())
        (least, *_) = re.findall(r"[Ss]parse is at least ([\d.]+) times faster \(other programs were running\)", text)
        lows = [contest.decision.ratio.low for contest in facts_of(kind).contests]
        assert any(float(least) == pytest.approx(low, rel=0.05) for low in lows)
        assert not re.search(r"Sparse is \d", text), "no factor is said as if it were known"


def test_a_side_that_is_cut_off_loses_by_a_least_factor():
    kind = "dense cut off"
    assert {contest.time for contest in facts_of(kind).contests} == {"sparse"}
    cut = re.compile(r"[Ss]parse is at least [\d.]+ times faster \(dense was cut off when its time was out\)")
    for text in written(kind):
        assert cut.search(" ".join(text.split()))
        assert not re.search(r"[Ss]parse is \d", text), "no factor is said as if it were known"


def test_a_likely_side_is_called_likely_and_never_a_winner():
    facts = facts_of("likely")
    likely = {contest.likely for contest in facts.contests} - {""}
    assert likely, "the rows are to have a likely side"
    assert {contest.time for contest in facts.contests if contest.likely} == {"inconclusive"}
    for text in written("likely"):
        result = re.findall(r"(sparse|dense) is probably faster, [\d.]+ times \(\d+ %\)", " ".join(text.split()), re.I)
        assert {side.lower() for side in result} == likely


def test_how_sure_the_answer_is_stands_once_in_the_page_and_under_the_verdict(kind):
    html, markdown = written(kind)
    texts = [text for _, text in Blocks(html).blocks]
    lines = [line for line in markdown.splitlines() if line]
    sure = next(lines[place + 1] for place, line in enumerate(lines) if line.startswith("**Answer.** "))
    assert texts.count(sure) == 1
    assert sure.startswith("How sure: ")
    assert '</p><p class="certainty">How sure: ' in panel_verdict(kind)


def test_the_same_configuration_has_the_same_number_in_every_table(kind):
    frame = frame_of(kind)
    times = plots.table("time_density", frame)
    memory = plots.table("memory_density", frame)
    alike = times.merge(memory, on=["configuration", "density"])
    assert len(alike) == len(times) == len(memory)
    phases = plots.table("phases", frame)
    result = dict(zip(phases["configuration"], phases["time a step"], strict=True))
    shown = plots.get("phases").chosen(frame, {})["density"]
    here = times[times["density"] == shown]
    assert result == dict(zip(here["configuration"], here["time a step"], strict=True))


# These tests can fail: a number, a winner or a row that is changed is found.

TAMPERED = {
    "a winner where there is none": ("A/A", lambda text: text.replace("inconclusive", "won: CSR ours beats dense")),
    "a number of another size": ("clear", lambda text: re.sub(r"(\d+)( to \d+)? (µs|ms)", r"9\1\2 \3", text)),
    "another factor": ("clear", lambda text: re.sub(r"\d+(\.\d+)? times", "77 times", text)),
    "another density": ("clear", lambda text: text.replace("break-even is at", "break-even is at 0.7 % and at")),
    "a likely side where there is none": (
        "A/A", lambda text: text.replace("Inconclusive:", "Sparse is probably faster, 1.2 times (85 %):")),
    "another likely side": ("likely", lambda text: re.sub("[Ss]parse is probably", "Dense is probably", text)),
    "another probability": ("likely", lambda text: re.sub(r"times \(\d+ %\)", "times (83 %)", text)),
    "another interval": ("clear", lambda text: re.sub(r"\(95 %: [\d.]+", "(95 %: 1.87", text)),
    "another cost": ("A/A", lambda text: re.sub(r"at most [\d.]+ times as", "at most 3.3 times as", text)),
    "another least factor": (
        "far apart next to other programs", lambda text: re.sub(r"at least [\d.]+ times", "at least 777 times", text)),
    "the other winner": ("clear", lambda text: text.replace("go sparse", "stay dense from 0.1 % on")),
}  # fmt: skip


@pytest.mark.parametrize("change", TAMPERED)
def test_a_sentence_that_was_changed_is_found(change):
    kind, tamper = TAMPERED[change]
    text = written(kind)[1]
    assert tamper(text) != text
    assert markdown_faults(tamper(text), facts_of(kind))


def test_rows_that_were_changed_after_the_report_are_found():
    rows = KINDS["clear"]
    for column, factor in (("seconds_step", 1.5), ("bytes_peak", 3)):
        changed = [row | {column: factor * row[column]} if row["format"] == "csr" else row for row in rows]
        assert markdown_faults(written("clear")[1], Facts.of(changed)), column
