"""The CPU quota of a container, by the files in which systems tell it."""

from pathlib import Path

import pytest

from kernels import threads


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


@pytest.mark.parametrize(
    ("line", "cores"), [("150000 100000", 1.5), ("max 100000", float("inf")), ("", float("inf")), ("x", float("inf"))]
)
def test_quota_of_version_2(line: str, cores: float, tmp_path: Path) -> None:
    write(tmp_path, own="0::/\n")
    write(tmp_path / "groups", cpu__max=line)
    assert threads.cores(tmp_path / "groups", tmp_path / "own") == cores


@pytest.mark.parametrize(("microseconds", "cores"), [("200000", 2.0), ("-1", float("inf"))])
def test_quota_of_version_1(microseconds: str, cores: float, tmp_path: Path) -> None:
    write(tmp_path, own="9:name=systemd:/\n3:cpuset:/\n1:cpu,cpuacct:/docker/7\n")
    files = {"cpu__cfs_quota_us": microseconds, "cpu__cfs_period_us": "100000"}
    write(tmp_path / "groups" / "cpu,cpuacct", **files)  # the container sees its own group as the topmost
    write(tmp_path / "groups" / "cpuset", cpu__cfs_quota_us="1", cpu__cfs_period_us="100000")
    assert threads.cores(tmp_path / "groups", tmp_path / "own") == cores


def test_the_least_quota_of_the_groups_above_counts(tmp_path: Path) -> None:
    write(tmp_path, own="0::/slice/service\n")
    write(tmp_path / "groups" / "slice", cpu__max="100000 100000")
    write(tmp_path / "groups" / "slice" / "service", cpu__max="400000 100000")
    assert threads.cores(tmp_path / "groups", tmp_path / "own") == 1.0


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    assert threads.cores(tmp_path / "groups", tmp_path / "own") == float("inf")
