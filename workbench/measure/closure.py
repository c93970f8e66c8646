"""The files that compute a result, found by following what each one imports: the code part of a key.

Followed are imports at any depth of a file, those inside functions too, the `__init__` of every package on the way, and
the kernels that a file asks the registry for by a name that stands in the call, as in `kernels.get("csr_dense")`. What
is asked for by a name that is put together at run time, the caller knows and gives as a root.
"""

import ast
import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, final

import kernels
from kernels.registry import KernelError, registry_of
from workbench.measure.clock import garbage_kept

INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Fields of a node of a syntax tree that hold statements, in the order of the text."""
CALL_OF_GET = re.compile(rb"\bget\s*\(")
BASE_OF_GET = re.compile(rb"(\w+)\s*\.\s*get\s*\(")
COMPILED = (".cu", ".cuh")
OURS = ("kernels", "workbench", "benchmarks")
"""The packages whose code is followed."""


def result_key(parts: Any) -> str:
    """Return the key of a record: a hash of everything that the record depends on, as JSON with sorted names.

    >>> result_key({"a": 1, "b": 2}) == result_key({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]


@final
class Code:
    """The packages `kernels` and `workbench` below a folder, each file read once.

    `entries` says which module registers a kernel, by the kernel's name.
    """

    def __init__(self, root: Path, entries: Mapping[str, str]) -> None:
        """Take the folder `root` and {kernel name: module}; files are read when first needed, and cached."""
        self.root, self.entries = root, entries
        self.file_of = functools.cache(self._file_of)
        self._used = functools.cache(self._uses)
        self._line = functools.cache(self._line_of)
        self._named = functools.cache(lambda file: frozenset(self._compiled(file)))
        self._digest = functools.cache(self._digest_of)

    def digest(self, roots: Iterable[str], apart: Iterable[str] = (), compiled: bool = False) -> str:
        """Return the hash (16 hexadecimal digits) of the text of `files(roots, apart, compiled)`; cached."""
        return self._digest(frozenset(roots), frozenset(apart), compiled)

    def _digest_of(self, roots: frozenset[str], apart: frozenset[str], compiled: bool) -> str:
        """Return the hash (16 hexadecimal digits) of paths and contents of all files that the roots import.

        Modules in `apart` are left out; `compiled` includes CUDA sources.
        """
        with garbage_kept():  # syntax trees are many objects: to search them for garbage takes most of the time
            text = "".join(map(self._line, self.files(roots, apart, compiled)))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _line_of(self, file: Path) -> str:
        """Return "path digest" and a newline: the path below the root and the SHA-256 of the content."""
        return f"{file.relative_to(self.root).as_posix()} {hashlib.sha256(file.read_bytes()).hexdigest()}\n"

    def files(self, roots: Iterable[str], apart: Iterable[str] = (), compiled: bool = False) -> list[Path]:
        """Return the source files, sorted, of `modules(roots, apart)`; with `compiled` also their CUDA sources.

        The file of data that a module reads, `rules.toml` of `rules.py`, is one of its sources.
        """
        files = {file for module in self.modules(roots, apart) if (file := self.file_of(module))}
        files |= {data for file in files if (data := file.with_suffix(".toml")).is_file()}
        if compiled:
            files |= {found for file in files if file.suffix == ".py" for found in self._named(file)}
        return sorted(files)

    def modules(self, roots: Iterable[str], apart: Iterable[str] = ()) -> frozenset[str]:
        """Return the names of the `roots` and of all modules they import, directly or indirectly.

        Modules in `apart`, and modules that only they import, are left out: a result does not depend on them. Raises
        ValueError for an unknown root.
        """
        waiting, found = sorted(set(roots)), set(apart)
        if unknown := [root for root in waiting if not self.file_of(root)]:
            raise ValueError(f"There is no module {unknown[0]!r} below {self.root}.")
        while waiting:
            module = waiting.pop()
            if module not in found:
                found.add(module)
                waiting += self._used(module)
        return frozenset(found.difference(apart))

    def _file_of(self, module: str) -> Path | None:
        """Return the source file of a module (dotted name) of kernels or workbench; None if there is none."""
        place = self.root.joinpath(*module.split("."))
        if module.split(".")[0] not in OURS:
            return None
        return next((file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file()), None)

    def _uses(self, module: str) -> frozenset[str]:
        """Return the modules that `module` imports itself, with their packages, and kernels it looks up by name.

        What a subpackage imports late is read from its stub, if it has one.
        """
        file = self.file_of(module)
        assert file is not None
        source, stub = file.read_bytes(), file.with_suffix(".pyi")
        tree = ast.parse(source)
        late = imports_of(ast.parse(stub.read_bytes())) if "." in module and stub.is_file() else ()
        bound: dict[str, str] = {}
        found = {*_with_packages(module)}
        for imported, name in itertools.chain(imports_of(tree, is_late=file.name == "__init__.py"), late):
            if not imported.startswith(OURS):
                continue
            for used in (imported, f"{imported}.{name.name}"):
                if self.file_of(used):
                    found.update(_with_packages(used))
                    bound[name.asname or name.name.split(".")[0]] = used
        asked = self._asked(tree, bound) if self._may_ask(source, bound) else ()
        return frozenset(found.union([self.entries[name] for name in asked]))

    def _may_ask(self, source: bytes, bound: Mapping[str, str]) -> bool:
        """Return whether `_asked` may yield a kernel, by the text of the file: of most files it need not be called."""
        if not CALL_OF_GET.search(source):  # which is found sooner than its base
            return False
        bases = {"get", *(base.decode() for base in BASE_OF_GET.findall(source))}
        return any(self._has_kernels(bound[base]) for base in bases & bound.keys())

    def _has_kernels(self, module: str) -> bool:
        """Return whether `get` of this module looks up a kernel."""
        return module == "kernels" or not self._is_package(module)

    def _asked(self, tree: ast.Module, bound: Mapping[str, str]) -> Iterator[str]:
        """Yield the names of the kernels that a syntax tree requests by `get` with a constant name.

        `bound` maps names to imported modules; in packages of the workbench `get` belongs to another registry.
        """
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call) or not call.args:
                continue
            function = call.func
            is_get = (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) == "get"
            base = function.value if isinstance(function, ast.Attribute) else function
            of = bound.get(base.id, "") if isinstance(base, ast.Name) else ""
            if is_get and of and self._has_kernels(of):
                texts = [node.value for node in ast.walk(call.args[0]) if isinstance(node, ast.Constant)]
                yield from [text for text in texts if isinstance(text, str) and text in self.entries]

    def _is_package(self, module: str) -> bool:
        """Return whether a module is a package (its file is an `__init__.py`)."""
        file = self.file_of(module)
        return file is not None and file.name == "__init__.py"

    def _compiled(self, file: Path) -> Iterator[Path]:
        """Yield the CUDA source next to a file, the sources that it names, and the headers that these include."""
        texts = (node.value for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.Constant))
        names = {text for text in texts if isinstance(text, str) and text.endswith(COMPILED)}
        waiting, found = [file.with_suffix(".cu"), *(file.parent / name for name in names)], set()
        while waiting:
            source = waiting.pop()
            if source.is_file() and source not in found:
                found.add(source)
                includes = INCLUDE.findall(source.read_text(encoding="utf-8"))
                waiting += [Path(*_parts(source.parent / header)) for header in includes]
        yield from found


def imports_of(tree: ast.AST, is_late: bool = False) -> list[tuple[str, ast.alias]]:
    """Return (module, alias) of each absolute import in a syntax tree; that of `import module` has the module's name.

    Relative imports are left out. Imports for the type checker only are included with `is_late`, since a package lists
    there what `__getattr__` imports.
    """
    waiting, found = [tree], []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and not is_late and _is_for_types(node.test):
            waiting += reversed(node.orelse)
        elif isinstance(node, ast.Import):
            found += [(alias.name, alias) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.module and not node.level:
                found += [(node.module, alias) for alias in node.names]
        else:  # no expression holds a statement
            waiting += reversed([child for field in BLOCKS for child in getattr(node, field, ())])
    return found


def _is_for_types(test: ast.expr) -> bool:
    """Return whether a condition is `TYPE_CHECKING` or `typing.TYPE_CHECKING`."""
    if isinstance(test, ast.Attribute):
        return test.attr == "TYPE_CHECKING" and isinstance(test.value, ast.Name) and test.value.id == "typing"
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


@functools.cache
def _with_packages(module: str) -> tuple[str, ...]:
    """Return the packages that contain a module, outermost first, then the module itself."""
    package, dot, _ = module.rpartition(".")
    return (*_with_packages(package), module) if dot else (module,)


def _parts(path: Path) -> list[str]:
    """Return the parts of a path with ".." resolved textually; links are not followed."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return parts


@final
class KernelModules(Mapping[str, str]):
    """Names of the modules that register kernels, by the names of these; no module is imported if its file tells.

    A kernel whose file is named otherwise is looked up in the registry, if its name is that of a library's kernel.
    """

    def __init__(self) -> None:
        """Take the registry of the kernels; nothing is imported."""
        self.registry = registry_of("kernel")

    def __getitem__(self, name: str) -> str:
        """Return the name of the module that registers the kernel `name`; KeyError if there is no such kernel."""
        library, _, entry = name.partition(".")
        if module := self.registry.likely_origin(name):
            return module
        if not (library and entry):
            raise KeyError(name)
        try:
            return self.registry.origin(name)
        except KernelError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of all kernels, all of which are imported."""
        return iter(self.registry.names())

    def __len__(self) -> int:
        """Return the number of kernels, all of which are imported."""
        return len(self.registry.names())


def registering_modules(kind: str, names: Iterable[str]) -> set[str]:
    """Return the modules that registered the entries `names` in the registry of `kind`, such as "kernel"; cached."""
    return set(_registering_modules(kind, tuple(names)))


@functools.cache
def _registering_modules(kind: str, names: tuple[str, ...]) -> frozenset[str]:
    """Return what `registering_modules` does; a file registers the same names as long as a process lives."""
    return frozenset(module for name in names if (module := registry_of(kind).origin(name)))


@functools.cache
def modules_of(kind: str) -> frozenset[str]:
    """Return all modules that may register entries of the registry of `kind`; imports none of them."""
    return frozenset(registry_of(kind).modules())


@functools.cache
def installed_code() -> Code:
    """Return the code of this installation; cached, so later changes of files that were read are not seen."""
    return Code(Path(kernels.__file__).parents[1], KernelModules())
