"""What a message says to type is typed, and then the call that failed succeeds: Python, `workbench` and shell lines."""

import re
import shlex
import subprocess

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from typer.testing import CliRunner

import workbench as wb
from workbench import data, option_text
from workbench.command import cli

Y = ["no", "yes", "no", "yes", "no", "yes"]
X = np.arange(12.0).reshape(6, 2) % 5
WITH_NAN = np.where(X == 2, np.nan, X)
WITH_INF = np.where(X == 2, np.inf, X)
FRAME = pd.DataFrame({"age": X[:, 0], "size": X[:, 1], "city": list("abcabc"), "bought": Y})


def longest_code(text):
    """The longest beginning of a text that is Python, up to a word of prose or the end of the sentence."""
    cuts = [match.start() for match in re.finditer(r" to | for |, | in place| if |\.$|\. |$", text)]
    for cut in reversed(cuts):
        code = text[:cut].strip()
        try:
            compile(code, "<typed>", "exec")
        except SyntaxError:
            continue
        return code
    raise AssertionError(f"no Python in {text!r}")


def proposals(message):
    """The lines of Python that a message says to type, alternatives after "or" apart."""
    typed = re.findall(r"\bType (.*)", message)
    assert typed, message
    found = []
    for text in re.split(r",? or (?!other)", typed[-1]):
        try:
            found.append(longest_code(text))
        except AssertionError:
            assert found, message  # words beside the code, such as "or give y as an array"
    return [code for code in found if not code.replace("_", "").isalpha()]


def perform(code, known, call, depth=0):
    """Type one proposal: a keyword is added to the call, all else is executed; return what the call then gives."""
    names = {"np": np, "pandas": pd, "sklearn": sklearn, "wb": wb} | known
    keyword = re.fullmatch(r"(\w+)=([^=].*)", code)
    if keyword:
        return call(names, **{keyword[1]: eval(keyword[2], names)})
    exec(code, names)
    try:
        return call(names)
    except ValueError as error:  # the next thing that is wrong, which has a proposal, too
        if "Type " not in str(error) or depth == 3:
            raise
        return perform(proposals(str(error))[0], names, call, depth + 1)


def load(names, **given):
    x = names.get("frame", names.get("X"))
    return wb.load(x, names["y"], **given) if names.get("y") is not None else wb.load(x, **given)


def frame_with(**columns):
    return FRAME.drop(columns=["bought"]).assign(**columns)


DATES = pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02"] * 3))
CASES = {
    "one dimension": ({"X": X[:, 0], "y": Y}, 1),
    "one dimension, a list": ({"X": X[:, 0].tolist(), "y": Y}, 1),
    "one dimension, a series": ({"X": pd.Series(X[:, 0]), "y": Y}, 1),
    "three dimensions": ({"X": X[:, :, None], "y": Y}, 1),
    "three dimensions, lists": ({"X": X[:, :, None].tolist(), "y": Y}, 1),
    "a generator": ({"X": lambda: (row for row in X), "y": Y}, 1),
    "a masked array": ({"X": np.ma.masked_equal(X, 2), "y": Y}, 1),
    "texts": ({"X": ["red car", "blue car", "red bus", "a car", "the bus", "no bus"], "y": Y}, 1),
    "objects of numbers": ({"X": X.astype(object), "y": Y}, 1),
    "lists of text numbers": ({"X": X.astype(str).tolist(), "y": Y}, 1),
    "objects of text": ({"X": np.array([["a", 1], ["b", 2], ["a", 3]] * 2, object), "y": Y}, 1),
    "complex": ({"X": X.astype(complex), "y": Y}, 1),
    "complex lists": ({"X": X.astype(complex).tolist(), "y": Y}, 1),
    "complex csr": ({"X": sp.csr_array(X.astype(complex)), "y": Y}, 1),
    "nan": ({"X": WITH_NAN, "y": Y}, 1),
    "nan in lists": ({"X": WITH_NAN.tolist(), "y": Y}, 1),
    "infinite": ({"X": WITH_INF, "y": Y}, 1),
    **{f"nan in {make.__name__}": ({"X": make(WITH_NAN), "y": Y}, 1)
       for make in (sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_array, sp.dok_array, sp.bsr_array)},
    "beyond float32": ({"X": X * 1e300, "y": Y}, 1),
    "csr beyond float32": ({"X": sp.csr_array(X * 1e300), "y": Y}, 1),
    "labels of a generator": ({"X": X, "y": lambda: (label for label in Y)}, 1),
    "labels of dates": ({"X": X, "y": DATES.to_numpy()}, 1),
    "labels of types": ({"X": X, "y": [1, "a", 1, "a", 1, "a"]}, 1),
    "missing labels": ({"X": X, "y": ["a", None, "b", "a", "b", "a"]}, 1),
    "nan labels": ({"X": X, "y": [1.5, np.nan, 2, 1, 2.5, 1]}, 1),
    "masked labels": ({"X": X, "y": np.ma.masked_equal([1, 0, 2, 1, 2, 1], 0)}, 1),
    "several labels": ({"X": X, "y": [["a"], ["b", "a"], ["b"], ["a"], [], ["a"]]}, 1),
    "a column twice": ({"frame": pd.concat([FRAME[["age"]], FRAME[["age", "city"]]], axis=1), "y": Y}, 1),
    "a column twice by its text": ({"frame": pd.DataFrame(X, columns=["1", 1]), "y": Y}, 1),
    "a column twice in Arrow": ({"frame": pa.Table.from_arrays([pa.array(X[:, 0])] * 2, names=["a", "a"]), "y": Y}, 1),
    "rows of few fields": ({"X": [{f"word {row}": 1} for row in range(40)], "y": ["a", "b"] * 20}, 1),
    "types in a column": ({"frame": frame_with(tags=[1, "b"] * 3), "y": Y}, 2),
    "missing labels within": ({"frame": FRAME.assign(bought=["no", None, "yes", "no", "yes", "no"])}, 1),
    "labels of pairs": ({"X": [[1, 2], [3, 4]], "y": "bought"}, 0),
}  # fmt: skip


def made(value):
    return value() if callable(value) else value


@pytest.mark.parametrize("name", [name for name, (_, count) in CASES.items() if count])
def test_what_a_refusal_says_to_type_makes_the_call_succeed(name):
    known, count = CASES[name]
    with pytest.raises(ValueError, match="Type ") as caught:
        load({key: made(value) for key, value in known.items()})
    found = proposals(str(caught.value))
    found = [code for code in found if "(1, -1)" not in code]  # one row, for which there is one label
    assert len(found) >= count, str(caught.value)
    for code in found:
        assert perform(code, {key: made(value) for key, value in known.items()}, load).rows


@pytest.mark.parametrize("named", ["agee", "unknown", 5])
def test_a_column_that_is_proposed_as_the_label_is_there(named):
    with pytest.raises(ValueError, match="Type label=") as caught:
        wb.load(FRAME, label=named)
    (code,) = proposals(str(caught.value))
    assert perform(code, {"frame": FRAME}, load).rows == 6


def test_hints_on_arguments(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("a.csv", index=False)
    opened = (tmp_path / "a.csv").open()
    calls = {
        "labels twice": lambda given: wb.load("a.csv", Y, **given),
        "an address": lambda given: wb.load(f"file://{tmp_path}/a.csv", **given),
        "label named as y": lambda given: wb.load(FRAME, **(given or {"y": "bought"})),
        "target": lambda given: wb.load(FRAME, **(given or {"target": "bought"})),
        "a model of numbers": lambda given: wb.train(X, [1.5, 2, 3, 4, 5, 6], **({"model": "logistic"} | given)),
        "an open file": lambda given: wb.load(opened),
    }
    for name, call in calls.items():
        with pytest.raises((ValueError, FileNotFoundError), match="Type ") as caught:
            call({})
        message = str(caught.value)
        if name == "labels twice":
            assert "X = wb.load('a.csv').x" in message
            exec("X = wb.load('a.csv').x; wb.load(X, y)", {"wb": wb, "y": Y})
        elif name == "an address":
            (tmp_path / "other").mkdir()
            monkeypatch.chdir(tmp_path / "other")
            exec(re.search(r'import urllib.*"\)', message)[0], {})
            assert wb.load("a.csv").rows == 6
        elif name == "an open file":
            assert eval(proposals(message)[0], {"wb": wb}).rows == 6
            opened.close()
        else:
            (code,) = proposals(message)[:1]
            assert perform(code, {}, lambda names, call=call, **given: call(given)) is not None
    capsys.readouterr()


@pytest.mark.parametrize("method", ["fit", "predict"])
def test_paths_given_to_an_estimator(tmp_path, monkeypatch, method):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("a.csv", index=False)
    model = wb.train("a.csv", random_state=0)
    with pytest.raises(TypeError, match="Type ") as caught:
        model.fit("a.csv", Y) if method == "fit" else model.predict("a.csv")
    text = str(caught.value).partition("Type ")[2]
    for code in re.findall(r"(?:model|X|wb)[\w. =]*\(.*?\)(?:\.\w+(?:\(.*?\))?)?", text):
        exec(code, {"wb": wb, "model": model})


FILES = {
    "latin.csv": "stadt,y\nMünchen,1\nKöln,0\n".encode("latin-1"),
    "decimal.csv": "a;b;y\n3,5;x;1\n2,5;z;0\n1,5;x;1\n",
    "gap.csv": "a,y\n1,0\n2,\n3,1\n",
    "ids.csv": "user_id,n,y\n" + "".join(f"{row % 50},{row / 7},{row % 2}\n" for row in range(300)),
    "names.csv": "k,n,y\n" + "".join(f"x{row},{row / 7},{row % 2}\n" for row in range(300)),
    "money.csv": "p,y\n" + "".join(f'"${row},000",{row % 2}\n' for row in range(100)),
    "tags.csv": "t,y\n" + "".join(f"{'abc'[row % 3]}|{'de'[row % 2]},{row % 2}\n" for row in range(60)),
    "odd.csv": "a,b,y\n" + "".join(f"{row / 7},u,{row % 2}\n" for row in range(50)) + "total,v,1\n",
    "huge.csv": "a,y\n" + "".join(f"{row % 4 * 10 ** (row % 60)},{row % 2}\n" for row in range(3)) + "0,0\n" * 9,
    "labels.csv": "a,y\n" + "".join(f"{row / 7},{row % 5 + 0.5}\n" for row in range(50)) + "1,many\n",
    "one.csv": "a\n1\n2\n",
    "constant.csv": "a,b,y\n1,1,0\n1,1,1\n",
    "many.json": '{"a": [{"x": 1, "y": 0}, {"x": 2, "y": 1}], "b": [{"x": 2, "y": 1}]}',
    "cut.jsonl": '{"a":1,"y":0}\n{"a":2,\n"y":1}\n{"a":3,"y":1}\n',
    "list.jsonl": '{"a":1,"y":0}\n[1,2]\n[{"a":2,"y":1}]\n7\n',
    "twice.csv": "user,item,rating\n1,2,5\n1,2,3\n2,3,4\n3,1,5\n",
    "nolabel.svm": "1:1 2:3\n2:1\n",
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (tmp_path / "labels.txt").write_text("0\n1\n")
    return tmp_path


def said_of(name, capsys):
    """What the readers say of a file, as a terminal shows it: notices, or the message of the refusal."""
    try:
        made = data.load(data.guess(name)[0], path=name, cache=False, **data.guess(name)[1])
    except ValueError as error:
        return str(error)
    return option_text.worded("\n".join(made.facts["guesses"]))


@pytest.mark.parametrize("name", FILES)
def test_what_a_reader_says_to_type_is_read_in_python_and_on_the_command_line(name, files, capsys):
    named = []
    with option_text.at_door(lambda options: named.append(options) or option_text.on_command_line(options)):
        said = said_of(name, capsys)
    python = [option_text.in_python(options) for options in named]
    shell = [words for words in map(option_text.on_command_line, named) if words.startswith("--")]
    jq = re.findall(r"jq -c .*? > NEW", said)
    assert python or jq, said
    for code in python:
        given = eval(f"dict({code})", {}) if code.count("=") else {}
        given = {
            key: "labels.txt" if value == "FILE" else "y" if value == "NAME" else value for key, value in given.items()
        }
        if given.get("kind") == "none":
            assert wb.profile(name, **given)
        else:
            assert wb.load(name, **given).rows, code
    for options in shell:
        words = [word.replace("NAME", "y").replace("FILE", "labels.txt") for word in shlex.split(options)]
        run(["data", "profile", name, *words])
    for line in jq[:1]:
        subprocess.run(["bash", "-c", line.replace("FILE", name).replace("NEW", "new.jsonl")], check=True)
        assert wb.load("new.jsonl", label="y").rows >= 2
    if "workbench data columns FILE" in said:
        run(["data", "columns", name, "--out", "columns.toml"])
        column, declared = next(iter(eval(python[-1].partition("=")[2])["columns"].items()))
        edited = re.sub(rf"(\[columns\.{column}\].*\n)(?:.+\n)*", "", (files / "columns.toml").read_text())
        lines = "".join(f"{key} = {value!r}\n" for key, value in declared.items())
        (files / "columns.toml").write_text(f"{edited}\n[columns.{column}]\n{lines}")
        run(["data", "profile", name, "--columns", "columns.toml"])


def run(words):
    """Run `workbench` with these words in this process."""
    result = CliRunner().invoke(cli.app, words)
    assert not result.exit_code, (words, result.output)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wb.Recommender(factor=3), "Recommender has no parameter 'factor'; .* Did you mean 'factors'?"),
        (lambda: wb.advise([[1.0]], model="als", factor=3), "Recommender has no parameter 'factor'"),
        (lambda: wb.race({}, budgets=3), "race has no parameter 'budgets'; its parameters are functions, .*'budget'?"),
        (lambda: wb.open(folder="x"), "open has no parameter 'folder'; its parameters are run."),
        (lambda: wb.runs(path="x"), "runs has no parameter 'path'; its parameters are root."),
        (lambda: wb.compare(a="x", b="y"), "compare has no parameter 'a'; its parameters are before, after."),
        (lambda: wb.load_model(path="x"), "load_model has no parameter 'path'; its parameters are folder."),
    ],
)
def test_an_unknown_parameter_lists_the_known_ones(call, message):
    with pytest.raises(TypeError, match=message.replace("?", r"\?")):
        call()
