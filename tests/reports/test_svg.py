"""Charts of pages in fewer bytes: what is drawn and said stays."""

import re
import xml.dom.minidom

import pytest
from matplotlib.figure import Figure

from tests.support import rows as made
from workbench import plots, store
from workbench.reports import page, svg

PLACE = "chart-1"


@pytest.fixture(params=["time_density", "memory_density", "phases", "loss_seconds"])
def charts(request, monkeypatch):
    """The SVG of a chart as Matplotlib writes it, and as pages have it."""

    def drawn():
        figure = Figure(figsize=(9.0, 6.0))
        plots.draw(request.param, page.written_frame(store.frame(made.rich())), figure)
        return str(page.inline(figure, PLACE, "A chart", "It shows a < b."))

    small = drawn()
    monkeypatch.setattr(page, "shrink", lambda text, place: text)
    return drawn(), small


def points(path):
    """Absolute points of a path of lines, to a tenth."""
    x = y = 0.0
    found = []
    for command, text in re.findall(r"([MLlhvz])([^MLlhvz]*)", path):
        numbers = [float(number) for number in re.findall(r"-?\d*\.?\d+", text)]
        pairs = list(zip(numbers[::2], numbers[1::2], strict=False))
        if command in "hv":
            pairs = [(number, 0.0) if command == "h" else (0.0, number) for number in numbers]
        for across, down in pairs:
            x, y = (across, down) if command in "ML" else (x + across, y + down)
            found.append((x, y))
    return found


def test_a_chart_of_a_page_is_smaller_and_says_and_draws_the_same(charts):
    large, small = charts
    assert len(small) < 0.7 * len(large)
    before, after = map(xml.dom.minidom.parseString, charts)
    for name in ("text", "title", "circle", "rect"):
        texts = [[node.toxml() for node in tree.getElementsByTagName(name)] for tree in (before, after)]
        said = [[re.sub(r"<[^>]*>", "", text) for text in found] for found in texts]
        assert said[0] == said[1], name
    own = re.sub(r"<defs>.*?</defs>", "", large, flags=re.DOTALL)  # marks have places of their own
    whole = [path for path in re.findall(r' d="([^"]*)"', own) if not re.search("[CQ]", path)]
    kept = [place for path in re.findall(r' d="([^"]*)"', small) if "C" not in path for place in points(path)]
    grid = {(round(x), round(y)) for x, y in kept}
    near = {(x + i, y + j) for x, y in grid for i in (-1, 0, 1) for j in (-1, 0, 1)}
    assert all((round(x), round(y)) in near for path in whole for x, y in points(path))


def test_each_reference_has_its_element_and_each_class_its_rule(charts):
    _, small = charts
    names = set(re.findall(r' id="([^"]*)"', small))
    assert set(re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', small)) <= {(name, "") for name in names} | {
        ("", name) for name in names
    }
    assert set(re.findall(r' class="([^"]*)"', small)) == set(re.findall(r"\.(s\w+){", small))
    assert {f"{PLACE}-title", f"{PLACE}-desc"} <= names


def test_a_path_ends_where_it_ended_however_many_points_it_has():
    places = [(0.04 * step, 10 + (-1) ** step * 0.04 * step) for step in range(500)]
    path = "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in places)
    for (x, y), (across, down) in zip(places, points(svg._relative(path)), strict=True):
        assert abs(x - across) < 0.051
        assert abs(y - down) < 0.051


def test_marks_that_can_be_seen_through_and_dashed_strokes_stay():
    dashed = '<path d="M0 0L1 1" style="fill: none; stroke-dasharray: 1"/>'
    assert svg.shrink(f"<svg>{dashed}{dashed}</svg>", "p").count("<path") == 2
    mark = '<defs><path id="m" d="M 0 3 L 0 -3" style="opacity: 0.5"/></defs>'
    assert "<use" in svg.shrink(f'<svg>{mark}<g><use xlink:href="#m" x="1" y="2"/></g></svg>', "p")


def test_names_of_charts_are_short_on_a_page_and_others_stay():
    path = '<path id="sxyz987-0" class="sabc123"/><use href="#sxyz987-0"/>'
    chart = f"<svg><style>.sabc123{{fill: none}}</style>{path}</svg>"
    page_of_one = svg.with_rules_once(f'<table class="soft"></table>{chart}')
    assert page_of_one == (
        '<table class="soft"></table>'
        '<svg><style>.s0{fill: none}</style><path id="s1" class="s0"/><use href="#s1"/></svg>'
    )


def test_a_rule_is_once_on_a_page():
    sheet = "<svg><style>.s1{fill: none}.s2{stroke: red}</style></svg>"
    twice = svg.with_rules_once(sheet + sheet.replace("s2", "s3"))
    assert (twice.count(".s1{"), twice.count(".s2{"), twice.count(".s3{")) == (1, 1, 1)
    assert svg.with_rules_once(sheet + sheet) == sheet + "<svg></svg>"
