"""Documents into words: what is counted, weighted and hashed, where labels come from, and what is refused."""

import gzip

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from workbench import data
from workbench.data import DataError, cache
from workbench.data.text import documents
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import Configuration

DOCUMENTS = ["The cat sat on the mat", "a dog sat", "Cats and dogs and the cat", "on the mat the dog", "mat!"]
LABELS = ["cat", "dog", "cat", "dog", "cat"]


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "kept"))
    lines = "".join(f"{label}\t{text}\n" for label, text in zip(LABELS, DOCUMENTS, strict=True))
    (tmp_path / "documents.txt").write_text(lines, encoding="utf-8")
    return tmp_path / "documents.txt"


def read(path, label="first", **parameters):
    return data.load("text", path=path, label=label, cache=False, **parameters)


def test_words_are_counted(path):
    made = read(path)
    expected = CountVectorizer().fit_transform(DOCUMENTS).toarray()
    np.testing.assert_array_equal(made.x.toarray(), expected)
    assert (made.classes, made.y.tolist()) == (("cat", "dog"), [0, 1, 0, 1, 0])


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"ngrams": 2}, CountVectorizer(ngram_range=(1, 2))),
        ({"weighting": "binary"}, CountVectorizer(binary=True)),
        ({"weighting": "tfidf"}, TfidfVectorizer()),
        ({"weighting": "tfidf", "ngrams": 3}, TfidfVectorizer(ngram_range=(1, 3))),
        ({"least_documents": 2}, CountVectorizer(min_df=2)),
        ({"most_features": 3}, CountVectorizer(vocabulary=["and", "mat", "the"])),
        ({"lower": False}, CountVectorizer(lowercase=False)),
        ({"hashed": 64}, HashingVectorizer(n_features=64, norm=None, alternate_sign=False)),
        (
            {"hashed": 64, "weighting": "binary"},
            HashingVectorizer(n_features=64, norm=None, alternate_sign=False, binary=True),
        ),
    ],
    ids=str,
)
def test_parameters_are_those_of_scikit_learn(path, parameters, expected):
    np.testing.assert_allclose(
        read(path, **parameters).x.toarray(), expected.fit_transform(DOCUMENTS).toarray(), rtol=1e-6
    )


@pytest.mark.parametrize(
    "parameters", [{}, {"weighting": "tfidf", "ngrams": 2}, {"hashed": 32, "weighting": "tfidf"}], ids=str
)
@pytest.mark.parametrize("is_cached", [False, True])
def test_a_second_file_has_the_words_of_the_first(path, tmp_path, parameters, is_cached):
    for _ in range(2):
        train = data.load("text", path=path, label="first", cache=is_cached, **parameters)
    (tmp_path / "later.txt").write_text("dog\tThe cat sat on the mat\ncat\tunheard of words, dog\n")
    later = data.load("text", path=tmp_path / "later.txt", like=train, cache=is_cached)
    assert later.features == train.features
    np.testing.assert_allclose(later.x.toarray()[0], train.x.toarray()[0], rtol=1e-6)
    assert (later.classes, later.y.tolist()) == (train.classes, [1, 0])


def test_labels_that_are_numbers_stay_numbers(path):
    path.write_text("0.5\tone word\n2\ttwo words\n")
    assert read(path).kind == "numbers"
    path.write_text("10\tone word\n9\ttwo words\n")
    assert read(path).classes == ("9", "10")


def test_the_separator_is_the_first_one(path):
    path.write_text("__label__a one two a\n\n__label__b three\n")
    made = read(path, separator=" ")
    assert (made.classes, made.rows, made.features) == (("__label__a", "__label__b"), 2, 3)


def test_labels_may_stand_in_a_file_of_their_own(tmp_path):
    (tmp_path / "documents.txt").write_text("\n".join(DOCUMENTS))
    (tmp_path / "labels.txt").write_text("\n".join(LABELS) + "\n")
    np.save(tmp_path / "labels.npy", LABELS)
    for name in ("labels.txt", "labels.npy"):
        made = read(tmp_path / "documents.txt", label="none", labels=tmp_path / name)
        assert (made.classes, made.y.tolist()) == (("cat", "dog"), [0, 1, 0, 1, 0])
    (tmp_path / "labels.txt").write_text("\n".join(LABELS[:3]))
    with pytest.raises(DataError, match=r"documents.txt has 5 rows and 3 labels; there must be one for each row"):
        read(tmp_path / "documents.txt", label="none", labels=tmp_path / "labels.txt")
    (tmp_path / "labels.txt").write_text("a\n\nb\n")
    with pytest.raises(DataError, match=r"labels.txt:2: there is no label; each row needs one"):
        read(tmp_path / "documents.txt", label="none", labels=tmp_path / "labels.txt")


@pytest.fixture
def folder(tmp_path):
    for number, (label, document) in enumerate(zip(LABELS, DOCUMENTS, strict=True)):
        (tmp_path / "classes" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "classes" / label / f"{number}.txt").write_text(document)
    return tmp_path / "classes"


def test_folders_are_classes(folder):
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "x").write_text("hidden")
    (folder / "cat" / ".hidden").write_text("hidden")
    (folder / "README").write_text("no class")
    packed = folder / "dog" / "9.txt"
    packed.write_bytes(gzip.compress(b"packed dog"))
    made = read(folder, label="none")
    texts = [DOCUMENTS[row] for row in (0, 2, 4, 1, 3)] + ["packed dog"]
    np.testing.assert_array_equal(made.x.toarray(), CountVectorizer().fit_transform(texts).toarray())
    assert (made.classes, made.y.tolist()) == (("cat", "dog"), [0, 0, 0, 1, 1, 1])


def test_a_changed_file_of_a_folder_is_read_anew(folder, tmp_path):
    first = data.load("text", path=folder, cache=tmp_path / "cache")
    (folder / "cat" / "0.txt").write_text("something entirely different")
    assert data.load("text", path=folder, cache=tmp_path / "cache").features > first.features - 3
    (folder / "cat" / "8.txt").write_text("one more")
    assert data.load("text", path=folder, cache=tmp_path / "cache").rows == first.rows + 1


def test_a_document_has_an_end(folder, monkeypatch):
    monkeypatch.setattr(documents, "LONGEST_LINE", 100)
    (folder / "cat" / "0.txt").write_text("word\n" * 50)
    with pytest.raises(DataError, match=r"0.txt has more than 100 bytes; a document has fewer: part it"):
        read(folder, label="none")


def test_a_cell_reads_documents(path):
    cell = Configuration(dataset="text", path=str(path), reading="label=first, hashed=64")
    assert make_problem(cell).x.shape == (5, 64)


def test_unusable_folders_are_refused(folder, tmp_path):
    with pytest.raises(
        DataError, match=r"classes is a folder, of which each sub-folder is a class; leave label='first' out"
    ):
        read(folder)
    with pytest.raises(
        DataError, match=r"cat holds no folder with files; put the documents of each class into a folder"
    ):
        read(folder / "cat", label="none")
    (folder / "cat" / "3.txt").write_bytes(b"caf\xe9")
    with pytest.raises(DataError, match=r"3.txt:1: the byte 0xe9 is not utf-8; save it as UTF-8, or give its encoding"):
        read(folder, label="none")
    assert read(folder, label="none", encoding="latin-1").rows == 6
    (folder / "cat" / "inner").mkdir()
    with pytest.raises(
        DataError, match=r"inner is a folder in the folder of a class; give the folder whose sub-folders"
    ):
        read(folder, label="none")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tone word\nno label\n", r"documents.txt:2: there is no '\\t' behind a label; label='first' wants"),
        (b"a\tone word\n\n\tno label\n", "documents.txt:3: there is no label; each row needs one"),
        (b"a" * 300 + b"\tone\n", "documents.txt:1: the label has 300 characters; up to 200 are one"),
        (b"a\tx y\nb\t. ?\n", "documents.txt holds no words of two letters or more"),
        (
            b"a\tone\nb\tcaf\xe9\n",
            "documents.txt:2: the byte 0xe9 is not utf-8; save it as UTF-8, or give its encoding",
        ),
        (b"a\tone\nb\t\0\n", "documents.txt.* looks like a binary file of another kind"),
        (b"", "documents.txt holds no words"),
    ],
)
def test_unusable_text_is_refused(path, content, message):
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(path)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"label": "last"}, "label is 'last'; it is one of none, first"),
        ({"label": "none"}, "documents.txt is read without labels.*label='first' where.*or labels= a file"),
        ({"separator": ""}, "separator is ''; it is text between a label and its document"),
        ({"separator": 1}, "separator is 1; it is text"),
        ({"encoding": "klingon"}, "encoding is 'klingon'; it is one that Python knows"),
        ({"labels": "x.npy"}, "label='first' and labels are given; the labels stand in one of the two places"),
        ({"hashed": 0}, "hashed is 0; it is a whole number from 1 to"),
        ({"hashed": 2.5}, "hashed is 2.5"),
        ({"hashed": 8, "most_features": 3}, "hashed is given; least_documents, most_features and vocabulary choose"),
        ({"weighting": "bm25"}, "weighting is 'bm25'; it is one of count, binary, tfidf"),
        ({"ngrams": 4}, "ngrams is 4; it is a whole number from 1 to 3"),
        ({"least_documents": 9}, "documents.txt holds no words .* that occur in 9 documents or more"),
        ({"most_features": True}, "most_features is True"),
        ({"lower": "no"}, "lower is 'no'; it is True or False"),
        ({"vocabulary": "cat"}, "vocabulary is a text; it is a list of words"),
        ({"idf": [1.0], "weighting": "tfidf"}, "idf has 1 numbers for 9 columns"),
    ],
)
def test_wrong_parameters_are_refused(path, parameters, message):
    with pytest.raises(DataError, match=message):
        read(path, **parameters)


def test_other_encodings_are_read(path):
    path.write_bytes("a\tcafé noir\nb\tthé\n".encode("utf-16"))
    assert read(path, encoding="utf-16").facts["reread"]["vocabulary"] == ["café", "noir", "thé"]
