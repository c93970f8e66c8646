#!/usr/bin/env bash
# Polars 1.35.2 and pyarrow 26.0.1: one frame reaches Arrow in two ways that give columns of different types, and of the
# categories of one of them pyarrow can neither decode, cast nor compare.
#
# frame.to_arrow() gives dictionary<large_string>; pa.table(frame), by the Arrow C interface, gives
# dictionary<string_view>. dictionary_decode(), cast(string) and compute.equal then raise ArrowNotImplementedError, while
# take, filter and unique work, so that the error comes late. A loader that takes "any frame with the Arrow interface"
# meets this with every Categorical and Enum column. The way around: cast the dictionary's values, not the column.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check polars==1.35.2 pyarrow==26.0.1
cat >"$folder/show.py" <<'PY'
import sys

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

print("Polars", pl.__version__, "pyarrow", pa.__version__)
SEEN = {}
for kind in (pl.Categorical, pl.Enum(["low", "high"])):
    frame = pl.DataFrame({"level": pl.Series(["low", "high", "low"], dtype=kind)})
    for way, table in {"frame.to_arrow()": frame.to_arrow(), "pa.table(frame)": pa.table(frame)}.items():
        column = table.column("level").combine_chunks()
        calls = {
            "dictionary_decode": lambda: column.dictionary_decode(),
            "cast": lambda: column.cast(pa.string()),
            "equal": lambda: pc.equal(column, "low"),
            "take": lambda: column.take(pa.array([0])),
            "filter": lambda: column.filter(pa.array([True, False, True])),
            "unique": lambda: column.unique(),
            "values cast": lambda: pa.DictionaryArray.from_arrays(
                column.indices, column.dictionary.cast(pa.string())
            ).dictionary_decode(),
        }
        for name, call in calls.items():
            try:
                call()
                SEEN[way, name, str(kind)] = "works"
            except pa.lib.ArrowNotImplementedError as error:
                SEEN[way, name, str(kind)] = str(error)
            print(f"{kind!s:>30} {way:<17} {column.type.value_type!s:<13} {name:<18} {SEEN[way, name, str(kind)]}")

FAIL = {"dictionary_decode", "cast", "equal"}
is_so = all(
    (result == "works") == (way == "frame.to_arrow()" or name not in FAIL) for (way, name, _), result in SEEN.items()
)
sys.exit(0 if is_so else 1)
PY
"$folder/venv/bin/python" "$folder/show.py"
