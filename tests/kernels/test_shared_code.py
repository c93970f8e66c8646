"""A fork server loads the compiled code that two of its processes have loaded, and starts no thread by that."""

import json
import subprocess
import sys

SERVER = """
import json, os
import numpy as np
from kernels import shared_code, threads
from kernels._compat import numba_internals
import kernels

assert shared_code.share_loaded_code()
loaded = []
numba_internals.on_load.append(lambda version: loaded.append(version.name))

def forked(work):
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.write(writing, json.dumps(work()).encode())
        os._exit(0)
    os.waitpid(process, 0)
    return json.loads(os.read(reading, 2**20))
"""

WORK = """
from kernels.threads import _clear_parts, equal_count

def work():
    threads.set_threads(2)
    rows = 4000
    indptr, indices = np.arange(rows + 1, dtype=np.int32) * 2, np.tile(np.array([0, 2], np.int32), rows)
    x, out = np.arange(12, dtype=np.float32).reshape(3, 4), np.ones((rows, 4), np.float32)
    with threads.parallel():  # the loop over rows on both threads, and that of Numba
        kernels.get("csr_dense").trusted(indptr, indices, np.ones(2 * rows, np.float32), x, out)
        cleared = np.ones(100, np.float32)
        _clear_parts(cleared, equal_count(100, 8))
    right = bool((out == x[0] + x[2]).all()) and not cleared.any()
    return {"right": right, "from_disk": loaded, "threads": numba_internals.layer().count()}

works = [forked(work) for _ in range(5)]
print(json.dumps({"works": works, "is_started": numba_internals.is_layer_loaded(), "of_server": loaded}))
"""


def output_of(code: str) -> dict:
    """What a fresh interpreter prints at last, as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_what_two_processes_have_loaded_the_others_have_from_the_server_which_starts_no_thread():
    found = output_of(SERVER + WORK)
    _, second, _, *others = found["works"]  # the first one may have compiled it
    assert all(work["right"] and work["threads"] == 2 for work in found["works"])
    assert len(second["from_disk"]) > 2
    assert all(work["from_disk"] == [] for work in others)
    assert not found["is_started"]


GONE = """
import pathlib, warnings

def work():
    return threads.equal_count(100, 8).tolist()

first = [forked(work) for _ in range(3)]  # the first one compiles it
for index in pathlib.Path(numba_internals.config.CACHE_DIR).rglob("*.nbi"):
    index.unlink()
with warnings.catch_warnings(record=True) as noted:
    warnings.simplefilter("always")
    last = forked(work)
print(json.dumps({"is_same": first[0] == last, "noted": [str(warning.message) for warning in noted]}))
"""


def test_code_that_is_gone_from_disk_is_compiled_again_and_a_warning_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    found = output_of(SERVER + GONE)
    assert found["is_same"]
    assert "Compiled code is not shared: " in found["noted"][0]
