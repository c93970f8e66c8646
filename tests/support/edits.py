"""A copy of the two packages in which files are edited, to see which keys follow."""

import functools
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import kernels
from workbench.measure import closure
from workbench.measure.closure import Code

ROOT = Path(kernels.__file__).parents[1]
KINDS = (".py", ".cu", ".cuh", ".toml")


class Copy:
    """Copies of `kernels` and `workbench` below a folder; `hashes` gives a hash of each name, of given code."""

    def __init__(self, folder: Path, hashes: Callable[[Code], Mapping[str, str]]) -> None:
        for package in ("kernels", "workbench", "benchmarks"):
            shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        self.folder, self.of_code = folder, hashes
        self.code = Code(folder, closure.KernelModules())
        self._found = functools.cache(self.code.modules)
        self.before = hashes(self.code)

    def files(self) -> set[Path]:
        """All files of the copies that are code."""
        return {file for kind in KINDS for file in self.folder.rglob(f"*{kind}")}

    def _modules(self, roots: Iterable[str], apart: Iterable[str] = ()) -> frozenset[str]:
        return self._found(frozenset(roots), frozenset(apart))

    def changed(self, *files: Path) -> set[str]:
        """Names whose hashes are others while these files are edited."""
        texts = {file: file.read_bytes() for file in files}
        for file, text in texts.items():
            file.write_bytes(text + b"\n")  # which is no import: what was parsed still holds
        again = Code(self.folder, self.code.entries)
        again._used, again._named, again.file_of = self.code._used, self.code._named, self.code.file_of
        again._line = lambda file: (again._line_of if file in texts else self.code._line)(file)
        again.modules = self._modules
        after = self.of_code(again)
        for file, text in texts.items():
            file.write_bytes(text)
        return {name for name in self.before if after[name] != self.before[name]}
