"""Ratings and lists of what users took: a user and an item one-hot a row, ids as text, and what is refused."""

import numpy as np
import pytest

from workbench import data, formats, option_text
from workbench.data import DataError
from workbench.data.dataset.targets import refuse_constant

PLAIN = [("7", "12", "3.5"), ("196", "12", "5"), ("7", "9", "1"), ("22", "377", "2")]
SEPARATORS = {"tab": "\t", "space": "  ", "comma": ", ", "semicolon": ";", "colons": "::"}


def load(folder, text, **parameters):
    (folder / "r.txt").write_text(text)
    return data.load("ratings", path=folder / "r.txt", cache=False, **parameters)


def text_of(rows, sign="\t", first=""):
    return first + "".join(sign.join(row) + "\n" for row in rows)


def by_hand(rows):
    """x and both lists of ids in plain Python."""
    blocks = []
    for place in (0, 1):
        ids = {row[place] for row in rows}
        is_whole = all(one.lstrip("+-").isdigit() for one in ids)
        blocks.append(sorted(ids, key=(lambda one: (int(one), one)) if is_whole else str))
    x = np.zeros((len(rows), len(blocks[0]) + len(blocks[1])), np.float32)
    for number, (user, item, *_) in enumerate(rows):
        x[number, blocks[0].index(user)] = x[number, len(blocks[0]) + blocks[1].index(item)] = 1
    return x, *blocks


def check(made, rows):
    x, users, items = by_hand(rows)
    np.testing.assert_array_equal(made.x.toarray(), x)
    formats.check(made.x, full=True)
    assert made.facts["fields"] == [made.facts["users"], made.facts["items"]] == [len(users), len(items)]
    assert (made.facts["reread"]["user_ids"], made.facts["reread"]["item_ids"]) == (users, items)


@pytest.mark.parametrize("time", [False, True])
@pytest.mark.parametrize("name", SEPARATORS)
def test_triplets_are_those_of_plain_python(tmp_path, name, time):
    rows = [(*row, str(881250949 + place)) for place, row in enumerate(PLAIN)] if time else PLAIN
    for parameters in ({}, {"separator": name}):
        made = load(tmp_path, text_of(rows, SEPARATORS[name]), **parameters)
        check(made, rows)
        assert (made.kind, made.y.tolist(), made.groups) == ("numbers", [3.5, 5, 1, 2], None)
        assert not made.facts["implicit"]


@pytest.mark.parametrize(
    "first", ["user,item,rating\n", "# a note\n% another\n\nuserId,movieId,rating\n", "\ufeffu,i,r\n"]
)
def test_a_line_of_names_and_comments_before_it_are_no_row(tmp_path, first):
    check(load(tmp_path, text_of(PLAIN, ",", first)), PLAIN)
    check(load(tmp_path, text_of(PLAIN, ",", first), header=True), PLAIN)
    with pytest.raises(DataError, match=r"r.txt:\d: column 3 is '.*'; expected a finite number"):
        load(tmp_path, text_of(PLAIN, ",", first), header=False)


@pytest.mark.parametrize(
    "ids", [("7", "07"), ("a b", "ä"), ("4294967296", "99999999999999999999"), ("-1", "1"), ("NA", "null"), ("1", "x")]
)
def test_ids_are_any_text(tmp_path, ids):
    rows = [(ids[0], ids[1], "1"), (ids[1], ids[0], "2"), (ids[0], ids[0], "3")]
    check(load(tmp_path, text_of(rows)), rows)


def test_quoted_fields_of_a_table_are_bare(tmp_path):
    made = load(tmp_path, '"u;1";"0345";"7"\n"u2";"0345";"0"\n')
    check(made, [("u;1", "0345", "7"), ("u2", "0345", "0")])


def test_the_order_of_columns_can_be_said(tmp_path):
    made = load(tmp_path, "i1,u1,5,99\ni1,u2,4,98\n", columns="item user rating")
    check(made, [("u1", "i1", "5"), ("u2", "i1", "4")])
    made = load(tmp_path, "99,u1,i1,5\n98,u2,i1,4\n", columns="time user item rating")
    check(made, [("u1", "i1", "5"), ("u2", "i1", "4")])


@pytest.mark.parametrize("parameters", [{}, {"lists": True}])
def test_lists_are_pairs(tmp_path, parameters):
    made = load(tmp_path, "10 3 4 5\n\n2 4\n7\n10 4 6\n", **parameters)
    rows = [("10", "3"), ("10", "4"), ("10", "5"), ("2", "4"), ("10", "6")]
    x, users, _ = by_hand([*rows, ("7", "3")])  # a user without items has a column
    np.testing.assert_array_equal(made.x.toarray(), x[:5])
    assert made.facts["reread"]["user_ids"] == users
    assert (made.facts["implicit"], made.facts["duplicates"], made.y.tolist()) == (True, 1, [1] * 5)


def test_ratings_can_be_counted_as_pairs(tmp_path):
    rows = [*PLAIN, ("7", "9", "4")]
    made = load(tmp_path, text_of(rows), implicit=True)
    check(made, PLAIN)
    assert (made.facts["implicit"], made.facts["duplicates"], made.y.tolist()) == (True, 1, [1] * 4)
    pairs = [row[:2] for row in PLAIN]
    check(load(tmp_path, text_of(pairs), implicit=True), pairs)
    check(load(tmp_path, text_of(pairs, first="user\titem\n"), implicit=True), pairs)
    with pytest.raises(DataError, match=r"r.txt has two columns and no ratings; .*\nType implicit=True"):
        load(tmp_path, text_of(pairs))


def test_a_pair_that_is_rated_again_is_refused_or_its_last_rating_taken(tmp_path):
    text = text_of([*PLAIN, ("7", "9", "4"), ("8", "9", "4"), ("7", "9", "3")], first="\n")
    with pytest.raises(
        DataError, match=r"r.txt:6: user 7 rates item 9 again, after .*r.txt:4; .*\nType duplicates=.last."
    ):
        load(tmp_path, text)
    made = load(tmp_path, text, duplicates="last")
    check(made, [PLAIN[0], PLAIN[1], PLAIN[3], ("8", "9", "4"), ("7", "9", "3")])
    assert (made.y.tolist(), made.facts["duplicates"]) == ([3.5, 5, 2, 4, 3], 2)


def test_ratings_that_are_all_equal_name_the_option_for_what_was_taken(tmp_path):
    text = text_of([(*pair[:2], "1") for pair in PLAIN])
    with pytest.raises(DataError, match=r"is 1: there is nothing to learn\.\n.*\nType implicit=True"):
        refuse_constant(load(tmp_path, text))
    assert load(tmp_path, text, implicit=True).facts["implicit"]


def test_another_file_has_the_columns_of_the_first(tmp_path):
    first = load(tmp_path, text_of(PLAIN))
    (tmp_path / "next.txt").write_text(text_of([("22", "9", "4"), ("7", "377", "5")]))
    made = data.load("ratings", like=first, path=tmp_path / "next.txt", cache=False)
    assert made.x.toarray().tolist() == [[0, 1, 0, 1, 0, 0], [1, 0, 0, 0, 0, 1]]
    assert made.facts["fields"] == first.facts["fields"]
    (tmp_path / "new.txt").write_text(text_of([("22", "9", "4"), ("8", "9", "4"), ("8", "1", "5"), ("7", "1", "5")]))
    with pytest.raises(
        DataError,
        match=r"new.txt:2: the user '?8'? is none of the 3 known: 7, 22, 196; .*\nType unknown=.empty.",
    ):
        data.load("ratings", like=first, path=tmp_path / "new.txt", cache=False)
    made = data.load("ratings", like=first, path=tmp_path / "new.txt", unknown="empty", cache=False)
    assert made.x.toarray().tolist() == [[0, 1, 0, 1, 0, 0], [0, 0, 0, 1, 0, 0], [0] * 6, [1, 0, 0, 0, 0, 0]]


def test_the_cache_keeps_ids_for_a_second_file(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "r.txt").write_text(text_of(PLAIN))
    made = [data.load("ratings", path=tmp_path / "r.txt") for _ in range(2)]
    assert made[0].facts == made[1].facts
    again = data.load("ratings", like=made[1], path=tmp_path / "r.txt")
    np.testing.assert_array_equal(again.x.toarray(), made[0].x.toarray())


def test_stars_can_be_classes(tmp_path):
    made = load(tmp_path, "a b 5\na c 1\nb b 5\n", kind="classes")
    assert (made.classes, made.y.tolist()) == (("1", "5"), [1, 0, 1])


@pytest.mark.parametrize(
    ("text", "parameters", "message"),
    [
        ("1 2 3\n1 3 x\n", {}, "r.txt:2: column 3 is 'x'; expected a finite number"),
        ("1 2 3\n\n1 3 nan\n", {}, "r.txt:3: column 3 is 'nan'; expected a finite number"),
        ("1,2,3\n1,3,1_0\n", {}, "r.txt:2: column 3 is '1_0'; expected a finite number"),
        ("1,2,3\n1,3,1e999\n", {}, "r.txt:2: column 3 is '1e999'; expected a finite number"),
        (
            "viewer,film,title,score\n7,8,The Wolf,4.5\n",
            {},
            "(?s)r.txt:1: column 3 is 'title'; .* if column 4 is:\nType columns=\"user item other3 rating\"",
        ),
        ("1\t2\t3\n1\t3\n", {"lists": False}, "r.txt:2: it has 2 columns, and the first row 3; .* parted by tab"),
        ("1\t2\t3\n1\t3\t4\t5\n", {"lists": False}, "r.txt:2: it has 4 columns, and the first row 3"),
        ("1,2,3\n,3,4\n", {}, "r.txt:2: a field is empty; all 3 columns hold something"),
        ("1\n2\n", {}, "r.txt has 1 columns; 'user item rating' needs 3"),
        ("", {}, "r.txt cannot be read as ratings .*: it looks like an empty file"),
        ("\n\n", {}, "r.txt holds no rows"),
        ("1 2 3\n1 3 1\0\n", {}, "r.txt cannot be read as ratings .* it looks like a binary file"),
        ("1 2 3\n", {"separator": "!"}, r"separator is '!'; it is one of colons, tab, semicolon, comma, pipe, space"),
        ("1 2 3\n", {"columns": "user rating"}, "columns is 'user rating'; it names each column once, user and item"),
        ("1 2 3\n", {"duplicates": "first"}, "duplicates is 'first'; it is one of refuse, last"),
        ("1 2 3\n", {"unknown": "x"}, "unknown is 'x'; it is one of refuse, empty"),
    ],
)
def test_invalid_files_are_refused_with_the_line(tmp_path, text, parameters, message):
    with pytest.raises(DataError, match=message):
        load(tmp_path, text, **parameters)


def test_lists_may_have_a_colon_behind_their_owner(tmp_path):
    made = load(tmp_path, "0: 3 9 12\n1: 4 9 3\n")
    assert made.facts["implicit"]
    assert (made.facts["users"], made.facts["items"], made.rows) == (2, 4, 6)
    assert made.facts["reread"]["user_ids"] == ["0", "1"]


NAMES, THINGS = ("anna", "ben", "carl"), ("apple", "pear", "plum")


@pytest.mark.parametrize("users", ["{}", "u{}"])
@pytest.mark.parametrize("items", ["{}", "i{}", "B00{}X"])
@pytest.mark.parametrize(
    "first", ["user,item", "user_id,item_id", "userId,movieId", "uid,iid", "who,what", "Customer Name,Product Title"]
)
def test_a_header_of_ids_with_digits_is_no_user_and_no_item(tmp_path, first, users, items):
    rows = [(users.format(number % 3 + 1), items.format(number % 5 + 1)) for number in range(15)]
    for more, names in (((), ""), (("3", "978300760"), ",stars,when")):
        text = text_of([(*row, *more) for row in rows], ",", f"{first}{names}\n")
        made = load(tmp_path, text, implicit=True)
        check(made, rows)
        assert made.facts.get("guesses", ()) == ()
        check(load(tmp_path, text_of(rows, ","), implicit=True), rows)


def test_a_header_of_ids_without_digits_is_told_by_its_words_or_its_numbers(tmp_path):
    rows = [(NAMES[number % 3], THINGS[number // 3]) for number in range(9)]
    check(load(tmp_path, text_of(rows, ",", "user,item\n"), implicit=True), rows)
    timed = text_of([(*row, str(number)) for number, row in enumerate(rows)], ",", "who,what,when\n")
    check(load(tmp_path, timed, implicit=True), rows)
    made = load(tmp_path, text_of(rows, ",", "who,what\n"), implicit=True)
    check(made, [("who", "what"), *rows])
    assert made.facts["guesses"] == (
        f"The first line is taken as a user 'who' and an item 'what'. As a header: {option_text.typed(header=True)}.",
    )
    check(load(tmp_path, text_of(rows, ",", "who,what\n"), implicit=True, header=True), rows)


def test_a_first_row_unlike_the_others_is_kept_where_an_id_of_it_has_a_digit(tmp_path):
    rows = [("guest", "5"), *((str(number), str(number % 4)) for number in range(9))]
    check(load(tmp_path, text_of(rows, ","), implicit=True), rows)


def test_a_title_with_commas_is_an_item(tmp_path):
    rows = [("1", '"Heat, the (1995)"', "3", "9"), ("2", '"Alien (1979)"', "4", "8"), ("1", '"Alien (1979)"', "2", "7")]
    made = load(tmp_path, text_of(rows, ",", "userId,title,rating,timestamp\n"))
    assert data.guess(tmp_path / "r.txt")[0] == "ratings"
    assert made.facts["reread"]["item_ids"] == ["Alien (1979)", "Heat, the (1995)"]
    assert made.y.tolist() == [3, 4, 2]


def test_a_header_says_which_of_two_columns_is_the_user(tmp_path):
    rows = [("u1", "i1"), ("u2", "i1"), ("u3", "i2")]
    check(load(tmp_path, text_of([row[::-1] for row in rows], ",", "item,user\n"), implicit=True), rows)
