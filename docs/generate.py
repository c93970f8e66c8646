"""Pages of the documentation that are made from the code and from the records: reference, gallery, tutorials."""

import gzip
import html
import importlib
import inspect
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import breakevens
import pictures
import surprises

ROOT = Path(__file__).parents[1]
CACHE = ROOT / "build" / "jupyter-cache"
NEED_FRAMEWORKS = {
    "06_tensorflow_and_keras": ("tensorflow",),
    "07_pytorch": ("torch",),
    "10_more_than_one_machine": ("distributed",),
}
"""Notebooks that need a package which the documentation does not: skipped, with a note, if it is absent."""
PACKAGES = (
    *("workbench", "workbench.data", "workbench.formats", "workbench.ops", "workbench.graph", "workbench.executor"),
    *("workbench.optimizers", "workbench.models", "workbench.metrics", "workbench.training", "workbench.module"),
    *("workbench.kvstore", "workbench.bridges.sklearn", "workbench.advising", "workbench.analysis", "workbench.plots"),
    *("workbench.store", "kernels"),
)
"""Packages of the reference, in the order of its chapters."""
PROJECT = ("workbench", "kernels")


def execution_mode() -> str:
    """Return "cache" if notebooks are to be executed, else "off"."""
    return "cache" if os.environ.get("WORKBENCH_DOCS_EXECUTE") else "off"


def not_executed() -> list[str]:
    """Return patterns of the notebooks whose packages are not installed."""
    absent = [name for name, needed in NEED_FRAMEWORKS.items() if not all(map(_is_installed, needed))]
    return [f"**/{name}.ipynb" for name in absent]


def write(docs: Path) -> None:
    """Write all generated pages below `docs`; a page that has not changed is not touched."""
    pages = {
        "reference/command_line.md": command_line(),
        "reference/settings.md": settings_table(),
        "reference/columns.md": columns(),
        "reference/data_sets.md": data_sets(),
        "reference/models.md": models(),
        "reference/operators.md": operators(),
        "reference/api.md": api_index(),
        "understand/breakevens.md": breakevens.page(),
        "understand/surprises.md": surprises.page(),
        "results/gallery.md": gallery(docs / "results"),
    }
    shutil.rmtree(docs / "reference" / "api", ignore_errors=True)  # Sphinx generates it, but removes nothing from it
    pages |= {f"reference/api_{name.replace('.', '_')}.rst": api_page(name) for name in PACKAGES}
    for name, text in pages.items():
        path = docs / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    _copy_notebooks(docs / "tutorials")
    pictures.write_pictures(docs / "pictures")


def inline_formula(translator: object, node: object) -> None:
    """Write a formula inside a line as MathML (a visitor of Sphinx)."""
    _write_formula(translator, node, "inline")


def display_formula(translator: object, node: object) -> None:
    """Write a formula on lines of its own as MathML (a visitor of Sphinx)."""
    _write_formula(translator, node, "block")


def _write_formula(translator: object, node: object, display: str) -> None:
    from docutils import nodes
    from latex2mathml.converter import convert

    translator.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table; bars and line breaks inside cells are made harmless."""
    header = list(header)
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines) + "\n"


def command_line() -> str:
    """Return the reference of the command line, made from the commands themselves."""
    import typer

    from benchmarks.suites import bench
    from workbench.command import cli

    parts = [
        "# Command line\n",
        "Every command has `--help`. By name; those of `python -m benchmarks` need a checkout:\n",
    ]
    programs = {"workbench": cli.app, "python -m benchmarks": bench}
    each = [(name, *one) for name, app in programs.items() for one in _commands(typer.main.get_command(app), ())]
    for program, names, command in each:
        parts += [f"## {' '.join((program, *names))}\n", f"{with_options_as_code((command.help or '').strip())}\n"]
        rows = []
        for parameter in command.params:
            if parameter.name == "help" or getattr(parameter, "hidden", False):
                continue
            is_option = parameter.param_type_name == "option"
            shown = ", ".join(f"`{name}`" for name in parameter.opts) if is_option else f"`{parameter.name.upper()}`"
            default = "" if parameter.default in (None, (), False) or callable(parameter.default) else parameter.default
            meaning = with_options_as_code(getattr(parameter, "help", "") or "")
            rows.append((shown, meaning, f"`{default}`" if default != "" else ""))
        if rows:
            parts.append(table(("argument or option", "meaning", "default"), rows))
    return "\n".join(parts)


def with_options_as_code(text: str) -> str:
    """Return a text with options such as --run as code: typography would make one dash of two."""
    return re.sub(r"(?<![\w`])--[a-z][\w-]*", r"`\g<0>`", text)


SETTINGS_RULE = """# Settings

A configuration is one value for each of these settings. A setting has one name: the keyword in Python, the option of
`workbench sweep` and `train` (`batch_rows` is `--batch-rows`), the key of a sweep's file, the field of the panel and
the column of the records. Several values are a list in Python and in a file, and stand between commas on the command
line and in the panel. `trial_seconds` and `rounds` say how a sweep measures: they are in `[measure]` of its file.

Estimators have scikit-learn's names: `max_iter` for `epochs`, `alpha` for `decay`, `random_state` for `seed` and
`fit_intercept` for `intercept`.

"""
"""The beginning of the reference of settings."""


def settings_table() -> str:
    """Return the reference of the settings of a configuration."""
    from workbench import settings

    rows = []
    for setting in (*settings.SETTINGS, *settings.MEASURE):
        allowed = setting.allowed if isinstance(setting.allowed, str) else ", ".join(setting.allowed)
        limits = [f"at least {setting.least:g}" if setting.least is not None else ""]
        limits += [f"above {setting.above:g}" if setting.above is not None else ""]
        limits += [f"at most {setting.most:g}" if setting.most is not None else ""]
        bounds = "; ".join(filter(None, [allowed, *limits]))
        default = "" if setting.default is None else f"`{setting.default}`"
        rows.append((f"`{setting.name}`", setting.meaning, default, bounds, setting.type.__name__))
    return SETTINGS_RULE + table(("setting", "meaning", "default", "allowed", "type"), rows)


def columns() -> str:
    """Return the reference of the columns of all result files."""
    from benchmarks import tables
    from workbench import store

    parts = ["# Columns of records\n", "Each line of a result file is one record: a JSON object with these keys.\n"]
    for of_table in (store.TRIALS, *tables.ALL):
        name = of_table.file.removesuffix(".jsonl").removeprefix("bench-")
        parts.append(f"## {name.lower()}: `{of_table.file}`\n")
        rows = ((f"`{column.name}`", column.meaning, column.kind) for column in of_table.columns.values())
        parts.append(table(("column", "meaning", "type"), rows))
    return "\n".join(parts)


def data_sets() -> str:
    """Return the reference of data sets and readers, with their parameters, source and licence."""
    from workbench import data

    parts = [
        "# Data sets and readers\n",
        "`wb.load` and `--dataset` take these names; a path is read by the reader that fits.\n",
    ]
    for name in data.names():
        source = data.get(name)
        text = inspect.getdoc(importlib.import_module(f"workbench.data.sources.{name}")) or ""
        parts += [f"## {name}\n", _first_paragraph(text) + "\n"]
        parts.append(f"Source: {source.origin}. Licence: {source.licence}.\n")
        given = ", ".join(f"`{parameter}`" for parameter in source.parameters)
        parts.append(f"Parameters: {given or 'none'}.\n")
    return "\n".join(parts)


def models() -> str:
    """Return the reference of the models."""
    from workbench import models as registry

    rows = []
    for name in registry.names():
        module = importlib.import_module(f"workbench.models.{name}")
        rows.append((f"`{name}`", registry.get(name).target, _first_paragraph(inspect.getdoc(module) or "")))
    return "# Models\n\n" + table(("model", "labels", "what it is"), rows)


def operators() -> str:
    """Return the reference of the operators with their format rules."""
    from operators import describe_operators

    return describe_operators()


def api_index() -> str:
    """Return the page that lists the packages of the reference."""
    lines = ["# Python interface", "", "```{toctree}", ":maxdepth: 1", ""]
    return "\n".join([*lines, *(f"api_{name.replace('.', '_')}" for name in PACKAGES), "```", ""])


def api_page(name: str) -> str:
    """Return the page of a package: what it is, and a page for each public name."""
    module = importlib.import_module(name)
    public = [each for each in _documented(name) if _home(module, each) == name]
    title = name
    lines = [title, "=" * len(title), "", _first_paragraph(inspect.getdoc(module) or ""), ""]
    lines += [f".. currentmodule:: {name}", "", ".. autosummary::", "   :toctree: api", ""]
    lines += [*(f"   {each}" for each in sorted(public)), ""]
    elsewhere = {each: _home(module, each) for each in sorted(_documented(name))}
    for each, home in elsewhere.items():
        if home != name:
            lines += [f"``{each}`` is :class:`{home}.{each}`.", ""]
    return "\n".join(lines)


def own_members() -> dict[str, list[str]]:
    """Return {full name of a class with a page: its members that a class of the project defines}.

    Methods named `set_..._request` are left out: scikit-learn makes them for each estimator, and explains them.
    """
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in filter(lambda each: inspect.isclass(getattr(module, each)), _documented(package)):
            bases = [base for base in inspect.getmro(getattr(module, name)) if base.__module__.startswith(PROJECT)]
            members = {member for base in bases for member in vars(base) if not member.startswith("_")}
            found[f"{package}.{name}"] = sorted(each for each in members if not re.fullmatch(r"set_\w+_request", each))
    return found


def _documented(name: str) -> list[str]:
    """Return the public names of a package that have a page."""
    module = importlib.import_module(name)
    return [each for each in getattr(module, "__all__", ()) if _is_documented(module, each)]


def _home(module: object, name: str) -> str:
    """Return the first package of the reference that offers this object under this name: the one that has its page."""
    value = getattr(module, name)
    found = (other for other in PACKAGES if name in _documented(other))
    return next(other for other in found if getattr(importlib.import_module(other), name) is value)


def gallery(folder: Path) -> str:
    """Return the gallery of results and copy its pages and charts: which machine, against whom, how much, when."""
    parts = ["# Gallery\n", "What was measured, by machine. Each page ends with the command that made it.\n"]
    shutil.rmtree(folder / "pages", ignore_errors=True)
    listed = []
    for machine in sorted(path for path in (ROOT / "results").iterdir() if path.is_dir()):
        facts = json.loads((machine / "machine.json").read_text(encoding="utf-8"))
        parts.append(f"## {machine.name}\n")
        parts.append(f"{facts.get('cpu', 'unknown processor')}, {facts.get('cores', '?')} cores.\n")
        captions, rows = _captions(machine), []
        for chart in sorted(machine.glob("*.svg")):
            target = folder / "charts" / machine.name / chart.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(chart, target)
        for page in sorted(machine.glob("*.md")):
            place = _copy_results_page(page, folder, {name: sentence for name, (_, sentence) in captions.items()})
            listed.append((page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# "), machine.name, place))
            newest = max(map(_time_of, _records(machine, page.stem.removesuffix("-report"))), default="")
            day = newest[:10].replace("-", "\u2011")  # hyphens at which a narrow column does not break
            rows.append((f"[{page.stem}]({place})", _lead(page.read_text(encoding="utf-8")), day))
        parts.append(table(("page", "what came of it", "newest record"), rows))
        for name, (title, sentence) in captions.items():
            if (machine / f"{name}.svg").exists():
                parts.append(f"### {title}\n\n![{sentence}](charts/{machine.name}/{name}.svg)\n\n{sentence}\n")
    return "\n".join([*parts, "```{toctree}", ":hidden:", "", *_entries(listed), "```", ""])


def _entries(listed: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Yield the entry of each page (title, machine, place) in a toctree: with the machine if others have that title."""
    count = Counter(title for title, _, _ in listed)
    for title, machine, place in listed:
        page = place.removesuffix(".md")
        yield f"{title} ({machine}) <{page}>" if count[title] > 1 else page


def _copy_results_page(page: Path, folder: Path, captions: Mapping[str, str]) -> str:
    """Copy a page of results into the site, its charts with their sentence as text; return its place in `folder`."""
    machine = page.parent.name
    place = f"pages/{machine}/{page.name}"

    def image(found: re.Match) -> str:
        """Return the Markdown of a chart of this page, as seen from the copy."""
        return f"![{captions.get(found[2], found[1])}](../../charts/{machine}/{found[2]}.svg)"

    text = re.sub(r"!\[([^\]]*)\]\(([\w.-]+)\.svg\)", image, page.read_text(encoding="utf-8"))
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    text = f"---\nnosearch: true\n---\n{text}"  # their numbers would hide the pages that explain something
    (folder / place).write_text(text, encoding="utf-8")
    return place


def _lead(text: str) -> str:
    """Return what a page of results says first: its bold text, or its first sentence."""
    bold = re.findall(r"\*\*([^*]+)\*\*", text)
    body = text.split("\n", 1)[1].strip()
    return bold[0] if bold else re.split(r"(?<=[.:]) ", _first_paragraph(body), maxsplit=1)[0]


def _captions(machine: Path) -> dict[str, tuple[str, str]]:
    """Return heading and sentence of each chart of the reports, by the name of its SVG file without the suffix."""
    captions: dict[str, tuple[str, str]] = {}
    for page in sorted(machine.glob("*-report.html")):
        for figure in re.findall(r"<figure>.*?</figure>", page.read_text(encoding="utf-8"), re.DOTALL):
            chart = re.search(r'<title id="(\w+)-\d+-title">([^<]*)<', figure)
            sentence = re.search(r"<figcaption>(.*?)</figcaption>", figure, re.DOTALL)
            if chart and sentence:
                _, _, facet = chart[2].partition(": ")
                suffix = re.sub(r"[^\w]+", "-", facet).strip("-")
                name = "-".join(filter(None, (page.stem.removesuffix("-report"), chart[1], suffix)))
                text = html.unescape(re.sub(r"<[^>]+>", "", sentence[1]))
                sentence = " ".join(text.split()).replace("[", "(").replace("]", ")")
                captions[name] = (f"{page.stem.removesuffix('-report')}: {html.unescape(chart[2])}", sentence)
    return captions


def _copy_notebooks(folder: Path) -> None:
    """Copy the notebooks beside the pages, where they are executed."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        target = folder / path.name
        if not target.exists() or target.read_bytes() != path.read_bytes():
            shutil.copyfile(path, target)


def _commands(command: object, names: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], object]]:
    """Yield the names and the command of each leaf of the command line."""
    children: Mapping[str, object] = getattr(command, "commands", {})
    if names and not children:
        yield names, command
    for name in sorted(children):
        if not getattr(children[name], "hidden", False):
            yield from _commands(children[name], (*names, name))


def _is_documented(module: object, name: str) -> bool:
    """Return whether a public name is a function or class of the project, which gets a page."""
    value = getattr(module, name, None)
    if not (inspect.isfunction(inspect.unwrap(value) if callable(value) else value) or inspect.isclass(value)):
        return False
    return value.__module__.startswith(PROJECT) and bool(inspect.getdoc(value))


def _first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n", 1)[0].split())


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ").strip()


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _records(machine: Path, name: str) -> list[str]:
    """Return the lines of a file of records, plain and compressed; none without such a file."""
    plain, packed = machine / f"{name}.jsonl", machine / f"{name}.jsonl.gz"
    text = gzip.decompress(packed.read_bytes()).decode("ascii") if packed.exists() else ""
    return (text + (plain.read_text(encoding="utf-8") if plain.exists() else "")).splitlines()


def _time_of(line: str) -> str:
    return str(json.loads(line).get("time", "")) if line.strip() else ""
