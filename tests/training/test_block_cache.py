"""Blocks kept on the disk: the same arrays as came, whatever they hold; nothing is left behind."""

import errno

import numpy as np
import pytest

from workbench.data.dataset.record import StreamedBlock
from workbench.formats.compressed import assemble
from workbench.training import block_cache, streaming
from workbench.training.block_cache import BlockCache
from workbench.training.streaming import Options, StreamTraining, open_stream


def drawn(seed: int, kind: type, values: str, rows: int = 30) -> list[StreamedBlock]:
    """Blocks with empty rows, one without rows, columns that fall and repeat, and labels of several types."""
    made, blocks = np.random.default_rng(seed), []
    most = 300 if kind is np.int32 else 1 << 50
    for number in range(7):
        count = 0 if number == 3 else rows
        indptr = np.concatenate([[0], np.cumsum(made.integers(0, 9, count))]).astype(kind)
        indices = made.integers(0, most, indptr[-1]).astype(kind)
        data = {
            "ones": np.ones(indptr[-1]),
            "counts": made.integers(0, 256, indptr[-1]),
            "numbers": made.normal(size=indptr[-1]),
            "odd": made.choice([-0.0, np.nan, np.inf, 1e-40, 256.0, 3.0], indptr[-1]),
        }[values].astype(np.float32)
        labels = made.choice(["no", "yes, longer"], count) if number == 5 else made.normal(size=count)
        x = assemble("csr", indptr, indices, data, (count, most))
        blocks.append(StreamedBlock(x, labels, 100 * (number + 1)))
    return blocks


@pytest.mark.parametrize("values", ["ones", "counts", "numbers", "odd"])
@pytest.mark.parametrize(("kind", "seed"), [(np.int32, 0), (np.int64, 1)])
def test_blocks_come_back_as_they_were_from_any_position(tmp_path, kind, seed, values) -> None:
    blocks, cache = drawn(seed, kind, values), BlockCache(tmp_path / "new")
    for block in blocks:
        cache.keep(block)
    for position in (0, 200, 700):
        count = 0
        for came, block in zip(cache.blocks(position), blocks[position // 100 :], strict=True):
            for name in ("indptr", "indices", "data"):
                ours, theirs = getattr(came.x, name), getattr(block.x, name)
                assert (ours.dtype, ours.tobytes()) == (theirs.dtype, theirs.tobytes()), name
            assert (came.x.shape, came.position) == (block.x.shape, block.position)
            assert (came.labels.dtype, came.labels.tolist()) == (block.labels.dtype, block.labels.tolist())
            count += 1
        assert count == 7 - position // 100
    labels = sum(block.labels.nbytes for block in blocks)
    entries = sum(len(block.x.indices) for block in blocks)
    if values == "ones":
        assert cache.size - labels < (2 if kind is np.int32 else 9) * entries + 8 * 30 * 7
    cache.close()
    assert not list((tmp_path / "new").iterdir())


def test_a_block_for_which_there_is_no_room_is_refused(tmp_path) -> None:
    cache = BlockCache(tmp_path)
    first, second, *_ = drawn(0, np.int32, "ones")
    cache.keep(first)
    cache.most = cache.size + 20
    with pytest.raises(OSError, match="too little room"):
        cache.keep(second)
    assert [block.position for block in cache.blocks(0)] == [100]
    cache.close()


def text(seed: int, labels: tuple[str, ...], rows: int = 600) -> str:
    """Lines of svmlight text; the last label comes late."""
    made, lines = np.random.default_rng(seed), []
    for row in range(rows):
        chosen = np.unique(made.integers(1, 200, 6))
        label = labels[int(made.integers(len(labels) - (row < rows // 2 and len(labels) > 2)))]
        lines.append(
            f"{label} " + " ".join(f"{c}:{v}" for c, v in zip(chosen, made.choice([1, 2, 0.5], 6), strict=False))
        )
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("labels", [("0", "1"), ("1", "2", "3")])
@pytest.mark.parametrize("seed", [0, 1])
def test_passes_over_the_copy_have_the_bits_of_passes_over_the_text(tmp_path, monkeypatch, seed, labels) -> None:
    path = tmp_path / "a.svm"
    path.write_text(text(seed, labels))
    monkeypatch.setattr(streaming, "CHOOSING_ROWS", 50)
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    read, weights, notes = list[int](), [], []
    for is_kept in (True, False):
        if not is_kept:
            monkeypatch.setattr(block_cache.tempfile, "TemporaryFile", refuse)
        stream = open_stream("svmlight", {"path": path}, 32 << 12)
        blocks = stream.blocks
        counted = type(stream)(
            lambda start, own=blocks: (read.append(start), own(start))[1], *list(vars(stream).values())[1:]
        )
        made = StreamTraining(counted, Options(passes=3))
        notes.append([event.note for event in made.events()])
        assert made.cache is None
        weights.append({name: array.tobytes() for name, array in made.learner.arrays.items()})
        assert not list((tmp_path / "cache" / "streams").iterdir())
    assert weights[0] == weights[1]
    more = 2 if len(labels) > 2 else 0  # labels are read, and it begins anew
    assert len(read) == 1 + more + 3 + more
    assert not any("cannot be kept" in note for note in notes[0])
    assert any("cannot be kept on the disk (" in note for note in notes[1])


def refuse(**given):
    """Fail as a full disk does."""
    raise OSError(errno.ENOSPC, "No space left on device")
