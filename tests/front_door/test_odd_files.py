"""Files as other people have them, typed at every door: each comes in at the first attempt, or with the one option that
the message spelled out for that door; what cannot come in is refused with the line to type."""

import gzip
import json
import re
import tarfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
from typer.testing import CliRunner

import workbench as wb
from tests.front_door.test_doors import called, ends_with
from workbench import option_text
from workbench.advising import advising as advising_core
from workbench.api import sweeping as api_sweeping
from workbench.command import cli, exit_codes, sweeping

COUNT = 80
RNG = np.random.default_rng(31)
AGE, TOWN = RNG.integers(18, 40, COUNT), RNG.choice(["Ulm", "Bonn", "Kiel"], COUNT)
PRICE = np.round(RNG.lognormal(3, 1, COUNT), 2)
BOUGHT = (AGE > 27).astype(int)
ROWS = [*zip(AGE.tolist(), TOWN.tolist(), PRICE.tolist(), BOUGHT.tolist(), strict=True)]
FRAME = pd.DataFrame(ROWS, columns=["age", "town", "price", "bought"])
HEAD = "age,town,price,bought\n"
BASE = HEAD + "".join(f"{age},{town},{price},{bought}\n" for age, town, price, bought in ROWS)
MATRIX = scipy.sparse.random(COUNT, 20, 0.2, format="csr", random_state=3)


def table(form, head=HEAD, end=""):
    """A text with a line a row."""
    lines = (form(age, town, price, bought) for age, town, price, bought in ROWS)
    return head + "".join(f"{line}\n" for line in lines) + end


def entries(row, first=1):
    """Entries of a row of svmlight."""
    return " ".join(f"{first + column}:{1 + (row + column) % 3}" for column in sorted({row % 7, 7 + row % 5, 12}))


def of_rows(form):
    return "".join(f"{form(row)}\n" for row in range(COUNT))


def with_64_bit_indices(path):
    x = MATRIX.copy()
    x.indices, x.indptr = x.indices.astype(np.int64), x.indptr.astype(np.int64)
    scipy.sparse.save_npz(path, x)


def zipped(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/train.csv", BASE)


@dataclass
class Odd:
    """A file: what writes it, the option that its message spells out, and what it is then."""

    content: object
    option: str = ""
    classes: int = 2
    more: dict = field(default_factory=dict)
    """Files that it needs."""

    def write(self, path):
        for name, content in self.more.items():
            (path.parent / name).write_text(content)
        if callable(self.content):
            self.content(path)
        else:
            path.write_bytes(self.content if isinstance(self.content, bytes) else self.content.encode())


def folder_of_parts(path):
    """Parts with a header each, in an order that is not that of the alphabet, beside what Spark leaves."""
    path.mkdir()
    (path / "_SUCCESS").touch()
    (path / ".part-2.csv.crc").write_bytes(b"crc")
    lines = BASE.splitlines(keepends=True)
    for number, start in ((2, 1), (10, 31), (11, 61)):
        stop = len(lines) if number == 11 else start + 30
        (path / f"part-{number}.csv").write_text("".join([lines[0], *lines[start:stop]]))


LABELS = {"labels.txt": "".join(f"{bought}\n" for bought in BOUGHT)}
QUOTED = table(lambda age, town, price, bought: f'{age},{town},"{1000 * price:,.2f}",{bought}')
ODD = {
    "parts": Odd(folder_of_parts),
    "r_table.txt": Odd('"age" "town" "price" "bought"\n' + "".join(
        f'"{number}" {age} "{town}" {price} {bought}\n' for number, (age, town, price, bought) in enumerate(ROWS, 1))),
    "r.csv": Odd('"","age","town","price","bought"\n' + "".join(
        f'"{number}",{age},"{town}",{price},{bought}\n' for number, (age, town, price, bought) in enumerate(ROWS, 1))),
    "excel.csv": Odd(table(lambda age, town, price, bought: f"{age};{town};{str(price).replace('.', ',')};{bought}\r",
                           "Alter;Ort;Preis;gekauft\r\n")),
    "excel_1252.csv": Odd(table(lambda age, town, price, bought: f"{age};{town};{price};{bought}",
                                "Größe;Ort;Preis;gekauft\n").encode("cp1252"), "encoding=latin-1"),
    "comments.tsv": Odd("# tool 3\n# 2024-01-01\n" + BASE.replace(",", "\t")),
    "sparse.arff": Odd("% c\n@RELATION x\n@ATTRIBUTE a NUMERIC\n@ATTRIBUTE b {p,q}\n@ATTRIBUTE class {no,yes}\n@DATA\n"
                       + "".join(f"{{0 {age}, 1 q{', 2 yes' * bought}}}\n" for age, _, _, bought in ROWS)),
    "quoted.arff": Odd("@relation 'my data'\n@attribute 'the age' numeric\n@attribute town {'Ulm','Bonn','Kiel'}\n"
                       "@attribute bought {0,1}\n@data\n"
                       + "".join(f"{age},'{town}',{bought}\n" for age, town, _, bought in ROWS)),
    "qid.svm": Odd(of_rows(lambda row: f"{row % 3} qid:{row // 8} {entries(row)}"), classes=3),
    "zero.svm": Odd(of_rows(lambda row: f"{row % 2} {entries(row, 0)}")),
    "several.svm": Odd(of_rows(lambda row: f"{row % 3},{3 + row % 2} {entries(row)}"), classes=5),
    "nested.jsonl": Odd("".join(json.dumps({"who": {"age": age, "town": town}, "tags": [1], "bought": bought}) + "\n"
                                for age, town, _, bought in ROWS)),
    "pretty.json": Odd(json.dumps({"data": [{"age": age, "bought": bought} for age, _, _, bought in ROWS]}, indent=1)),
    "split.json": Odd(FRAME.to_json(orient="split")),
    "lists.parquet": Odd(lambda path: FRAME.assign(tags=[["a"]] * COUNT).to_parquet(path)),
    "x.feather": Odd(FRAME.to_feather),
    "int64.npz": Odd(with_64_bit_indices, "labels=labels.txt", more=LABELS),
    "several.mat": Odd(lambda path: scipy.io.savemat(
        path, {"A": MATRIX.tocsc(), "B": np.ones((COUNT, 3)), "gnd": BOUGHT[:, None] + 1, "info": "x"})),
    "spaces.vw": Odd(of_rows(lambda row: f"{1 if row % 2 else -1} tag_{row}|user a{row % 2} b |item price:{row % 3}")),
    "importance.vw": Odd(of_rows(lambda row: f"{1 if row % 2 else -1} 2.0 'tag|user a{row % 2} b"),
                         "importance=ignored"),
    "title.csv": Odd("Sales report 2024\n" + BASE),
    "title_and_blank.csv": Odd("Sales report 2024\n\n" + BASE),
    "title_with_commas.csv": Odd("Sales report 2024,,,\n" + BASE),
    "names_twice.csv": Odd(table(lambda age, town, price, bought: f"{age},{town},{price},{price + 1},{bought}",
                                 "age,town,price,price,bought\n")),
    "separator_behind.csv": Odd(table(lambda age, town, price, bought: f"{age},{town},{price},{bought},",
                                      "age,town,price,bought,\n")),
    "separator_behind_rows.csv": Odd(table(lambda age, town, price, bought: f"{age},{town},{price},{bought},")),
    "thousands.csv": Odd(QUOTED),
    "mixed_ends.csv": Odd("".join(f"{line}{end}" for line, end in zip(
        BASE.splitlines(), ["\n", "\r\n"] * COUNT, strict=False))),
    "mac_ends.csv": Odd(BASE.replace("\n", "\r")),
    "one.zip": Odd(zipped),
    "is_gzip.csv": Odd(gzip.compress(BASE.encode())),
    "no_gzip.csv.gz": Odd(BASE),
    "without_some_labels.csv": Odd(
        table(lambda age, town, price, bought: f"{age},{town},{price},{bought if age % 9 else ''}"), "unlabelled=skip"),
    "true_false.csv": Odd(table(lambda age, town, price, bought: f"{age},{town},{price},{bool(bought)}")),
    "one_two.csv": Odd(table(lambda age, town, price, bought: f"{age},{town},{price},{bought + 1}")),
    "plus_minus.csv": Odd(table(lambda age, town, price, bought: f"{age},{town},{price},{'+1' if bought else '-1'}")),
    "label_first.csv": Odd(table(lambda age, town, price, bought: f"{bought},{age},{price},{age % 7}", "")),
    "label_last.csv": Odd(table(lambda age, town, price, bought: f"{age},{price},{age % 7},{bought}", "")),
    "utf_16.csv": Odd(BASE.encode("utf-16")),
    "utf_32.csv": Odd(BASE.encode("utf-32")),
    "one_column.csv": Odd("age\n" + "".join(f"{age}\n" for age in AGE), "labels=labels.txt", more=LABELS),
    "pipes_around.psv": Odd(table(lambda age, town, price, bought: f"|{age}|{town}|{price}|{bought}|",
                                  "|age|town|price|bought|\n")),
    "single_quotes.csv": Odd(table(lambda age, town, price, bought: f"{age},'{town}',{price},{bought}",
                                   "'age','town','price','bought'\n")),
    "units (1).csv": Odd(table(lambda age, town, price, bought: f"{age},{town},{price} €,{bought}",
                               "age [years],town,price (EUR),bought\n")),
    "floats.csv": Odd(table(lambda age, town, price, bought: f"{price:.6e},{age}.,{bought}.", "a,b,y\n")),
    "dates.csv": Odd(table(lambda age, town, price, bought: f"2024-01-{1 + age % 28:02d},{age},{bought}",
                           "date,age,bought\n")),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a cache of its own, in which nothing is measured."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(advising_core, "_Advising", ends_with(lambda settings, *_, **__: settings["dataset"]))
    monkeypatch.setattr(sweeping, "start", ends_with(lambda spec, *_, **__: spec.axes["dataset"][0]))
    monkeypatch.setattr(api_sweeping, "measured", ends_with(lambda spec, *_, **__: spec.axes["dataset"][0]))
    return tmp_path


def in_python(option):
    """A setting of a reader as keyword arguments."""
    return option_text.parsed(option) if option else {}


def on_the_command_line(option):
    """The same as options."""
    if not option:
        return []
    name, _, value = option.partition("=")
    return [f"--{name}", value] if name == "labels" else ["--reading", option]


def run(*words):
    """Status and all that a command says."""
    came = CliRunner().invoke(cli.app, [str(word) for word in words])
    error = came.exception
    said = exit_codes.text_of(error) if error is not None and not isinstance(error, SystemExit) else ""
    return came, f"{came.output}\n{said}"


@pytest.mark.parametrize("name", ODD)
def test_a_file_of_others_comes_in_at_every_door(name, folder, capsys):
    odd = ODD[name]
    odd.write(folder / name)
    given, typed = in_python(odd.option), on_the_command_line(odd.option)
    if odd.option:
        key, _, value = odd.option.partition("=")
        spelled = f'{key}="FILE"' if key == "labels" else f'{key}="{value}"'
        for door in (wb.load, wb.train, wb.advise, wb.sweep):
            with pytest.raises(ValueError, match=re.escape(spelled)):
                door(name)
        for words in (("train", name), ("advise", name, "--budget", 5), ("sweep", "--path", name, "--yes")):
            _, said = run(*words)
            assert " ".join(["--labels", "FILE"] if key == "labels" else typed) in said, words
    made = wb.load(name, **given)
    assert 0.7 * COUNT <= made.rows <= COUNT
    assert made.kind in ("classes", "multilabel")
    assert len(made.classes) == odd.classes
    assert wb.profile(name, **given).facts.rows == made.rows
    assert called(wb.advise, name, budget=5, capsys=capsys, **given)[0] == made.name
    assert called(wb.sweep, name, capsys=capsys, **given)[0] == made.name
    came, said = run("data", "profile", name, *typed)
    assert came.exit_code == 0, said
    assert run("advise", name, "--budget", 5, *typed)[0].exception.args[0] == made.name
    assert run("sweep", "--path", name, "--yes", *typed)[0].exception.args[0] == made.name
    came, said = run("train", name, "--epochs", 1, "--save", "model", *typed)
    assert came.exit_code == 0, said
    came, said = run("apply", "model", name, "--out", "scores.csv", *(typed if "--labels" in typed else []))
    assert came.exit_code == 0, said
    assert len(Path("scores.csv").read_text().splitlines()) == made.rows + 1


def folder_of_two_kinds(path):
    path.mkdir()
    (path / "a.csv").write_text(BASE)
    (path / "b.svm").write_text("1 1:2\n")


def two_in(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train.csv", BASE)
        archive.writestr("readme.txt", "x")


def in_a_tar(path):
    (path.parent / "inner.csv").write_text(BASE)
    with tarfile.open(path, "w:gz") as archive:
        archive.add(path.parent / "inner.csv", "a.csv")


REFUSED = {
    "empty.csv": ("", "an empty file"),
    "header.csv": (HEAD, "holds a header and no rows"),
    "one_row.csv": (HEAD + "30,Ulm,2.5,1\n", "no column to learn from"),
    "total.csv": (table(lambda *row: ",".join(map(str, row)), end="Total,,99.5,12\n"),
                  "total.csv:82: .*'Total' is no finite one.\nTake the row out of the file if it is a total"),
    "comments_inside.csv": (table(lambda *row: ",".join(map(str, row)), end="# page 2\n30,Ulm,2.5,1\n"),
                            "comments_inside.csv:82: a comment between the rows. .* grep -v '\\^#' FILE > NEW"),
    "blanks_between_labels.svm": (of_rows(lambda row: f"{row % 2}{', 2' * (row % 3 == 1)} {entries(row)}"),
                                  "Type sed 's/, \\*/,/g' FILE > NEW"),
    "table.html": (FRAME.to_html(), "a page of HTML or XML text"),
    "kinds": (folder_of_two_kinds, "files of several kinds: a.csv is comma-separated text, b.svm is svmlight text"),
    "two.zip": (two_in, "as unzip FILE does, and give a file of it, such as 'train.csv'"),
    "one.tar.gz": (in_a_tar, "one.tar.gz .*looks like a tar archive.* tar -xf FILE"),
    "x.dta": (FRAME.to_stata, "a Stata file.*pandas.read_stata\\('FILE'\\).to_csv"),
    "x.pkl": (FRAME.to_pickle, "a pickle.* or a frame by to_csv"),
    "only_text.csv": ("town\n" + "".join(f"{town}\n" for town in TOWN), "labels"),
}  # fmt: skip
"""Content or what writes it, and what is said at every door."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_come_in_is_refused_with_what_to_type_at_every_door(name, folder):
    content, message = REFUSED[name]
    Odd(content).write(folder / name)
    for door in (wb.load, wb.train, wb.advise, wb.sweep):
        with pytest.raises(ValueError, match=f"(?s){message}"):
            door(name)
    for words in (("train", name), ("advise", name, "--budget", 5), ("sweep", "--path", name, "--yes")):
        came, said = run(*words)
        assert came.exit_code != 0, words
        assert re.search(f"(?s){message}", said), (words, said)
