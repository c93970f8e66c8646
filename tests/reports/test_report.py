"""The report: one file that opens without a network, says the answer first, and takes text from rows literally."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import answer_text, breakeven, configurations, formatting
from workbench.reports import page, report

GIVEN = {
    "title": "Known law",
    "command": "workbench run known_law.toml --out results",
    "machine": {"processor": "AMD EPYC 9354", "caches": {"L3": "32 MB"}, "cores": [0, 1]},
}
VOID = {"meta", "br", "img", "link", "input", "hr"}
NASTY = '</td><script>alert("x")</script> `code` | *bold* [a](http://evil.example)\nnext $\\frac$'


class Page(HTMLParser):
    """What a test wants of a page: tags with attributes in order, text, headings, and whether every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.headings, self.words, self.unclosed = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.unclosed.append(tag)

    def handle_data(self, data):
        self.words.append(data)
        if self.open and re.fullmatch("h[1-6]", self.open[-1]):
            self.headings.append((self.open[-1], data))

    @property
    def text(self):
        return " ".join(" ".join(self.words).replace("\u00a0", " ").split())

    def named(self, tag, attribute=""):
        return [has for name, has in self.tags if name == tag and (not attribute or attribute in has)]


def page_of(tmp_path, rows, **change):
    path = report.html(store.frame(rows), tmp_path / "report.html", **GIVEN | change)
    return path.read_text(encoding="utf-8"), Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    return page_of(tmp_path_factory.mktemp("report"), maker.rich())


def outside(text):
    """Everything a browser would fetch, or run, for this page."""
    (own,) = report.scripts({})["scripts"]
    text = text.replace(f"<script>{own}</script>", "")
    fetched = re.findall(
        r'(?:src|href)="(?!#)[^"]*"|url\((?!#)[^)]*\)|@import[^;]*|<script|<link|<iframe|\bon\w+="', text
    )
    return [found for found in fetched if "http://www.w3.org/" not in found]


def test_the_page_needs_nothing_from_outside(rich):
    text, page = rich
    assert outside(text) == []
    assert [a["content"] for a in page.named("meta") if "http-equiv" in a] == [
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{report.scripts({})['digests'][0]}'"
    ]
    for bad in (
        '<img src="https://a.example/x.png">',
        "<script>",
        '<p onclick="x()">',
        "url(font.woff)",
        '<link rel="x">',
    ):
        assert outside(text + bad), "the search itself must be able to find one"


def test_the_answer_comes_first_a_number_a_table_a_chart_then_words_and_grounds(rich):
    _, page = rich
    assert page.headings[0] == ("h1", "Known law")
    order = [
        "Answer",
        "Candidates",
        "Break-evens",
        "Speed",
        "Memory",
        "Phases of a step",
        "Quality",
        "Roofline",
    ]
    order += ["Configurations without a result", "Machine, versions, command", "How it was measured", "Records"]
    assert [words for level, words in page.headings if level == "h2"] == order
    text = answer_text(store.frame(maker.rich()))
    assert page.text.count(text.time) == 1
    order = ("Go sparse.", text.time, text.memory, text.step, "trained a worse model than", "✓", "Numbers behind")
    order += ("A break-even is the density",)
    places = [page.text.index(result) for result in order]
    assert places == sorted(places)
    assert GIVEN["command"] in page.text
    for result in (
        "AMD EPYC 9354",
        "caches: L3",
        "32 MB",
        "OpenBLAS 0.3.30",
        "There are 4 rounds a configuration, and 80 samples.",
    ):
        assert result in page.text
    assert "The largest relative error against the reference is 2.0e-07; 1.0e-05 is allowed there" in page.text


def test_the_method_names_one_number_once_and_the_baseline_of_each_device():
    text = " ".join(
        report.sentences(configurations.records(configurations.pool_rounds(store.frame(maker.sweep(device="cuda")))))
    )
    assert "There are 4 rounds a configuration, and 80 samples." in text
    assert (
        "It has one candidate: dense on cuda. It is what sparse is compared with. Its products are those of cuBLAS"
        in text
    )
    assert "cuBLAS" not in " ".join(
        report.sentences(configurations.records(configurations.pool_rounds(store.frame(maker.sweep()))))
    )


def test_a_list_of_mappings_is_told_in_words():
    blas = [{"internal_api": "openblas", "num_threads": 2}, {"internal_api": "mkl", "num_threads": 1}]
    result = "internal_api openblas num_threads 2, internal_api mkl num_threads 1"
    assert page.flat({"blas": blas, "layers": ["omp", "tbb"]}) == [("blas", result), ("layers", "omp, tbb")]


def test_all_tags_are_closed_and_all_ids_are_used_once(rich):
    _, page = rich
    assert (page.open, page.unclosed) == ([], [])
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids)) > 100
    wanted = {a[name][1:] for _, a in page.tags for name in ("href", "xlink:href") if a.get(name, "").startswith("#")}
    assert wanted <= set(ids)


def test_charts_and_tables_can_be_read_aloud(rich):
    text, page = rich
    assert page.named("html")[0]["lang"] == "en"
    levels = [int(level[1]) for level, _ in page.headings]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    charts = page.named("svg")
    assert len(charts) == 2 * 6, "two groups of the two charts against density, one of each other; wide and narrow"
    for chart in charts:
        assert chart["role"] == "img"
        for place in chart["aria-labelledby"].split():
            assert re.search(rf'<(title|desc) id="{place}">[^<]+</', text)
    assert all(attributes.get("scope") in ("col", "row") for attributes in page.named("th"))
    assert len(page.named("caption")) == len(page.named("table"))
    sections = sum(attributes.get("class") == "section" for attributes in page.named("details"))
    assert sections == 11
    assert len(page.named("details")) == len(charts) // 2 + 1 + len(page.named("tr", "id")) + sections


def test_every_failed_configuration_is_listed_with_its_reason(rich):
    _, page = rich
    for result in (
        "csc has no row_sparse gradient with sgd",
        "no result after 60 s",
        "needs 5 GB, the limit is 4 GB",
        "5.2 GB",
    ):
        assert result in page.text


def test_text_from_rows_and_arguments_is_taken_literally(tmp_path):
    rows = maker.sweep(dataset=NASTY, machine=NASTY, blas=NASTY, versions={NASTY: NASTY})
    lost = [row["format"] == "csr" and row["density"] == 0.001 for row in rows]
    rows = [maker.failed(row, "failed", NASTY) if gone else row for row, gone in zip(rows, lost, strict=True)]
    text, page = page_of(tmp_path, rows, title=NASTY, command=NASTY, machine={NASTY: NASTY})
    assert outside(text) == []
    assert (page.open, page.unclosed) == ([], [])
    assert page.text.count('<script>alert("x")</script>') >= 6
    written = report.markdown(store.frame(rows), tmp_path / "a.md", **GIVEN | {"title": NASTY, "command": "a ``` b"})
    marked = written.read_text()
    assert r"\<script\>" in marked
    assert not re.search(r"(?<!\\)<script", marked)
    assert "````\na ``` b\n````" in marked
    configurations = {
        len(re.findall(r"(?<!\\)\|", line)) for line in marked.splitlines() if line.startswith("| sparse")
    }
    assert configurations == {6, 7}, "each table keeps its number of cells"


def test_no_rows_and_only_failures_still_give_a_report(tmp_path, no_charts):
    _, page = page_of(tmp_path, [])
    assert "There is no answer yet" in page.text
    assert "Configurations without a result" not in page.text, "a section that has nothing to show is left out"
    _, page = page_of(tmp_path, [maker.failed(row, "timeout", "no result after 60 s") for row in maker.sweep()])
    assert "12 of 12 configurations have no result: 12 timeout" in page.text
    assert "12 timeout" in page.text


def test_the_same_rows_give_the_same_bytes(tmp_path, rich):
    assert page_of(tmp_path, maker.rich())[0] == rich[0]
    assert len(rich[0].encode()) < 3_000_000


def test_markdown_says_the_same_without_charts(tmp_path):
    path = report.markdown(store.frame(maker.rich()), tmp_path / "report.md", **GIVEN)
    text = path.read_text()
    assert text.startswith("# Known law\n\n**Go sparse.** ")
    order = [
        "Peak memory: ",
        "- S1: sparse",
        "## Time a step by density",
        "## Candidates",
    ]
    assert sorted(map(text.index, order)) == [*map(text.index, order)]
    (even, *_) = breakeven(store.frame(maker.rich()))
    assert f"| {formatting.name_configuration(even.settings)} | time | {even.place} |" in text
    assert "```\nworkbench run known_law.toml --out results\n```" in text
    assert "![" not in text
    assert list(tmp_path.iterdir()) == [path]


def test_markdown_with_pictures_links_files_beside_it(tmp_path):
    path = report.markdown(store.frame(maker.sweep()), tmp_path / "report.md", **GIVEN, pictures=True)
    text = path.read_text()
    linked = re.findall(r"!\[.+?\]\((.+?)\)", text)
    assert text.index("## Peak memory by density") < text.index("![") < text.index("## Candidates")
    assert len(linked) == 4
    for name in linked:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_markdown_stays_short_and_says_what_it_leaves_out(tmp_path):
    rows = [row for width in range(1, 60) for row in maker.sweep(densities=(0.01, 0.1, 0.5), width=width, samples=6)]
    rows = [maker.failed(row, "failed", "x" * 300) if row["density"] == 0.5 else row for row in rows]
    path = report.markdown(store.frame(rows), tmp_path / "report.md", **GIVEN)
    assert len(path.read_bytes()) < 60_000
    assert "more rows are left out here; the HTML report has all" in path.read_text()


def test_each_group_has_its_answer_at_the_top(tmp_path, no_charts):
    slower = [maker.DENSE, replace(maker.SPARSE, fixed=9 * maker.SPARSE.fixed)]
    rows = [*maker.sweep(densities=(0.01, 0.1)), *maker.sweep(slower, densities=(0.01, 0.1), width=64)]
    _, page = page_of(tmp_path, rows)
    assert "What else was measured" in page.text
    markdown = report.markdown(store.frame(rows), tmp_path / "report.md", **GIVEN).read_text()
    assert re.search(r"\| .*64.* \| sparse at 1 %", markdown)
    assert "What else" not in page_of(tmp_path, maker.sweep(densities=(0.01, 0.1)))[0]


def test_groups_that_are_not_drawn_are_counted(tmp_path, no_charts):
    rows = [row for width in range(1, 7) for row in maker.sweep(densities=(0.01, 0.1), width=width, samples=6)]
    _, page = page_of(tmp_path, rows)
    assert "Not drawn, but in the tables: 2 groups of configurations, smaller ones or without a result." in page.text
    assert len(page.named("svg")) == 2 * (4 + 4 + 1 + 1)


def test_groups_without_a_result_take_no_chart_from_those_with_one(tmp_path, no_charts):
    lost = [maker.failed(row, "unsupported", "No CUDA device.") for row in maker.sweep(device="cuda", rounds=2)]
    rows = [*lost, *maker.sweep(densities=(0.01, 0.1), samples=6)]
    _, page = page_of(tmp_path, rows)
    assert len(page.named("svg")) == 2 * 4
    assert "Not drawn, but in the tables: 1 group of configurations" in page.text
    _, page = page_of(tmp_path, lost)
    assert not page.named("svg"), "a chart that has nothing to show is a sentence"
