"""Folders of part files: what is read is what one file of all parts holds, and what is no such folder is refused."""

import gzip
import json
import re
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from workbench import data
from workbench.data import DataError

ROWS = 40
FRAME = pd.DataFrame(
    {
        "age": range(ROWS),
        "size": np.arange(ROWS) / 3,
        "kind": ["x", "grün", "z", "w"] * (ROWS // 4),
        "label": [0, 1] * (ROWS // 2),
    }
)
PAIRS = [(f"u{number % 7}", f"i{number}", str(number % 5)) for number in range(ROWS)]

pytestmark = pytest.mark.usefixtures("own_cache")


def matrix(rows):
    return rows[["age", "size"]].to_numpy()


def text(line):
    """Writes a line for each row, none at the end of the file."""
    return lambda rows, path: path.write_text("\n".join(line(*row) for row in rows.itertuples(index=False)))


def pairs(header):
    def write(rows, path):
        lines = [header] if header else []
        path.write_text("\n".join([*lines, *(",".join(PAIRS[age]) for age in rows.age)]))

    return write


def saved(save):
    """Writes by what NumPy and SciPy name `save(file, rows)`, without an ending that they would add."""

    def write(rows, path):
        with path.open("wb") as file:
            save(file, rows)

    return write


def packed(rows, path):
    path.write_bytes(gzip.compress(rows.to_csv(index=False).encode()))


KINDS = {
    "csv": (lambda rows, path: rows.to_csv(path, index=False), {}),
    "csv without a header": (lambda rows, path: rows.to_csv(path, index=False, header=False), {}),
    "csv below titles": (
        lambda rows, path: path.write_text("sep=;\nA sheet\n" + rows.to_csv(index=False, sep=";")),
        {},
    ),
    "csv packed": (packed, {}),
    "csv in latin-1": (lambda rows, path: rows.to_csv(path, index=False, encoding="latin-1"), {"encoding": "latin-1"}),
    "JSON lines": (lambda rows, path: rows.to_json(path, orient="records", lines=True), {}),
    "JSON arrays": (lambda rows, path: rows.to_json(path, orient="records"), {}),
    "Parquet": (lambda rows, path: rows.astype({"kind": "category"}).to_parquet(path), {}),
    "Feather": (lambda rows, path: rows.reset_index(drop=True).to_feather(path), {}),
    "svmlight": (text(lambda age, size, kind, label: f"{label} 1:{age + 1} {age + 2}:{size:.3f}"), {}),
    "Vowpal Wabbit": (text(lambda age, size, kind, label: f"{label} |f {kind} size:{size + 1:.3f}"), {}),
    "labelled text": (text(lambda age, size, kind, label: f"{label}\tthese are {kind} words of {age}"), {}),
    "ratings": (pairs("user,item,rating"), {}),
    "pairs": (pairs("user,item,rating"), {"dataset": "ratings", "implicit": True}),
    "pairs without a header": (pairs(""), {"dataset": "ratings", "implicit": True}),
    "savez": (saved(lambda file, rows: np.savez(file, X=matrix(rows), y=rows.label)), {}),
    "save_npz": (saved(lambda file, rows: sp.save_npz(file, sp.csr_array(matrix(rows)))), {"labels": "y.npy"}),
    "unlabelled": (saved(lambda file, rows: sp.save_npz(file, sp.csr_array(matrix(rows)))), {"kind": "none"}),
    "save": (saved(lambda file, rows: np.save(file, matrix(rows))), {"labels": "y.npy"}),
    "Matrix Market": (saved(lambda file, rows: scipy.io.mmwrite(file, matrix(rows))), {"label_column": 0}),
    "MATLAB": (saved(lambda file, rows: scipy.io.savemat(file, {"X": matrix(rows), "y": rows.label})), {}),
}
"""What writes rows, and the parameters by which they are read, by the name of the kind."""
NEEDING = {"JSON lines": "pyarrow", "JSON arrays": "pyarrow", "Parquet": "pyarrow", "Feather": "pyarrow"}


def load(path, dataset="", **given):
    name, options, _ = data.guess(path)
    return data.load(dataset or name, path=path, **{**({} if dataset else options), **given})


def write_parts(folder, write, parts=12):
    """Parts 0 to 11 of the frame, whose alphabet puts 10 before 2, with what is no part beside them."""
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    (folder / "README.md").write_text("# What these rows are\n")
    (folder / "LICENSE").write_text("CC0")
    (folder / ".part-0.crc").write_bytes(b"\1\2")
    (folder / "part-99").touch()
    for number, rows in enumerate(np.array_split(np.arange(ROWS), parts)):
        write(FRAME.iloc[rows], folder / f"part-{number}")
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_parts_is_the_file_of_all_rows(kind, tmp_path, monkeypatch):
    pytest.importorskip(NEEDING.get(kind, "numpy"))
    monkeypatch.chdir(tmp_path)
    np.save("y.npy", FRAME.label)
    write, given = KINDS[kind]
    folder = write_parts(tmp_path / "parts", write)
    write(FRAME, tmp_path / "whole")
    parts, whole = load(folder, **given), load(tmp_path / "whole", **given)
    assert parts.x.shape == whole.x.shape
    assert (parts.x != whole.x).nnz == 0
    assert parts.y.tolist() == whole.y.tolist()
    assert (parts.rows, parts.classes, parts.source) == (ROWS, whole.classes, "the folder parts, 12 files")
    assert parts.facts["guesses"][0] == "Not read, as about the data: LICENSE, README.md."
    if data.get(parts.name).blocks is not None and "kind" not in given:
        data.convert(parts.name, tmp_path / "X.sparse", shuffle=None, path=folder, **given_to_reader(folder, given))
        stored = data.load("sparse", path=tmp_path / "X.sparse", whole=True)
        assert (stored.x != whole.x).nnz == 0


def given_to_reader(folder, given):
    return {**data.guess(folder)[1], **{name: value for name, value in given.items() if name != "dataset"}}


def test_a_later_file_is_read_like_a_folder_and_a_changed_part_is_read_anew(tmp_path):
    folder = write_parts(tmp_path / "parts", KINDS["csv"][0])
    made = load(folder)
    KINDS["csv"][0](FRAME[:9], tmp_path / "later")
    later = data.load("table", path=tmp_path / "later", like=made)
    assert (later.x != made.x[:9]).nnz == 0
    FRAME[:5].to_csv(folder / "part-12", index=False)
    assert load(folder).rows == ROWS + 5


def test_a_header_only_in_the_first_part_is_no_row_and_the_others_lose_none(tmp_path):
    lines = FRAME.to_csv(index=False).splitlines(keepends=True)
    (tmp_path / "parts").mkdir()
    for number, start in enumerate(range(0, len(lines), 9)):
        (tmp_path / "parts" / f"x{number}").write_text("".join(lines[start : start + 9]))
    KINDS["csv"][0](FRAME, tmp_path / "whole")
    assert (load(tmp_path / "parts").x != load(tmp_path / "whole").x).nnz == 0


def test_a_first_line_that_may_be_a_header_is_asked_for_and_both_answers_are_read(tmp_path):
    (tmp_path / "parts").mkdir()
    for number in range(3):
        rows = [("a", "b"), *(("a", "c"), ("b", "b")) * 4]
        (tmp_path / "parts" / f"{number}.csv").write_text("".join(f"{left},{right}\n" for left, right in rows))
    with pytest.raises(DataError, match=r"begins with 'a,b', a header or a row.\nType header=True"):
        load(tmp_path / "parts")
    assert load(tmp_path / "parts", header=True).rows == 24
    assert load(tmp_path / "parts", header=False).rows == 27


def test_what_is_wrong_in_a_part_is_told_with_its_line(tmp_path):
    folder = write_parts(tmp_path / "parts", KINDS["csv"][0], parts=3)
    with (folder / "part-1").open("a") as file:
        file.write("1,2\n")
    with pytest.raises(DataError, match=r"parts/part-1:15: this row has 2 fields"):
        load(folder)
    with (folder / "part-0").open("a") as file:
        file.write("1,2\n")
    with pytest.raises(DataError, match=r"parts/part-0:16: this row has 2 fields"):
        load(folder)


def two(write, other):
    """Writes a folder of two files."""

    def folder(path):
        path.mkdir()
        write(FRAME, path / "a")
        other(FRAME, path / "b")

    return folder


CSV, PARQUET = KINDS["csv"][0], KINDS["Parquet"][0]
WRONG = {
    "kinds": (two(CSV, KINDS["svmlight"][0]), "a is comma-separated text, b is svmlight text"),
    "packed and not of a kind": (two(CSV, KINDS["savez"][0]), "a is comma-separated text, b is an .npz archive"),
    "lines and arrays": (two(KINDS["JSON lines"][0], KINDS["JSON arrays"][0]), "a is JSON lines, as text, b is a JSON"),
    "headers": (two(CSV, lambda rows, path: CSV(rows[["size", "age", "kind", "label"]], path)),
                "b has the header 'size,age,kind,label', and .*a 'age,size,kind,label'"),
    "columns of Parquet": (two(PARQUET, lambda rows, path: PARQUET(rows.drop(columns="age"), path)),
                           "b has other columns than .*a: age"),
    "types of Parquet": (two(PARQUET, lambda rows, path: PARQUET(rows.assign(age="x"), path)),
                         "(?s)differ between its parts: .*age has incompatible types"),
    "widths": (two(KINDS["savez"][0], saved(lambda file, rows: np.savez(file, X=np.eye(ROWS), y=rows.label))),
               "b has 40 columns and .*a 2"),
    "text without labels": (two(*[text(lambda *row: "some words of a letter")] * 2), "a folder of text"),
    "nothing": (lambda path: (path.mkdir(), (path / "_SUCCESS").touch()), "looks like an empty folder"),
    "nothing but an empty file": (lambda path: (path.mkdir(), (path / "a").touch()), "or one of empty files"),
    "a link to no file": (lambda path: (two(CSV, CSV)(path), (path / "c").symlink_to("nowhere")), "c is a link to a"),
    "a part twice": (lambda path: (two(CSV, CSV)(path), (path / "b.gz").write_bytes((path / "b").read_bytes())),
                     r"holds b and b\.gz, the same rows twice; expected each part once\.\nDelete one"),
    "a run": (lambda path: (path.mkdir(), (path / "trials.jsonl").write_text("{}\n"), (path / "id").write_text("a")),
              "a run folder, of records, .* Type workbench report FOLDER"),
    "a model": (lambda path: (path.mkdir(), (path / "model.json").write_text("{}\n")), "Type workbench apply FOLDER"),
    "a folder beside files": (lambda path: (two(CSV, CSV)(path), (path / "more").mkdir()), "looks like a folder"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_folder_that_is_no_file_in_parts_is_refused_by_name(name, tmp_path):
    pytest.importorskip("pyarrow")
    write, message = WRONG[name]
    write(tmp_path / "parts")
    with pytest.raises(DataError, match=message):
        load(tmp_path / "parts")


def test_readers_that_are_named_refuse_parts_of_several_kinds(tmp_path):
    two(CSV, KINDS["savez"][0])(tmp_path / "parts")
    with pytest.raises(DataError, match=r"a is comma-separated text, b is an \.npz archive"):
        data.load("table", path=tmp_path / "parts")


def test_missing_values_of_a_part_do_not_change_the_type_of_a_column(tmp_path):
    pytest.importorskip("pyarrow")
    two(PARQUET, lambda rows, path: PARQUET(rows.assign(age=None), path))(tmp_path / "parts")
    made = load(tmp_path / "parts")
    assert made.facts["reread"]["columns"]["columns"]["age"]["kind"] == "number"
    assert made.rows == 2 * ROWS


def test_the_command_for_partitions_of_hive_joins_them(tmp_path):
    pytest.importorskip("pyarrow")
    for label, rows in FRAME.groupby("label"):
        (tmp_path / "parts" / f"label={label}").mkdir(parents=True)
        PARQUET(rows.drop(columns="label"), tmp_path / "parts" / f"label={label}" / "a.parquet")
    with pytest.raises(DataError, match="partitions, as Hive writes them") as said:
        load(tmp_path / "parts")
    command = re.search(r"as (python -c .*) does", str(said.value))[1].replace("FOLDER", "parts")
    subprocess.run([sys.executable, *shlex.split(command)[1:]], cwd=tmp_path, check=True)
    made = load(tmp_path / "NEW.parquet")
    assert (made.rows, made.classes) == (ROWS, ("0", "1"))


def test_a_folder_of_parts_wins_over_a_reader_of_its_name(tmp_path, monkeypatch):
    from workbench.advising.source import settings_of

    monkeypatch.chdir(tmp_path)
    write_parts(tmp_path / "table", KINDS["csv"][0])
    assert settings_of("table")[0] == {"dataset": "table", "path": "table"}
    assert settings_of("stdlib")[0] == {"dataset": "stdlib"}
    json.dumps(load("table").facts)
