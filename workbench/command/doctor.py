"""The doctor: what this machine has for the workbench, and what to fix."""

import functools
import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
from rich.table import Table

import kernels
from kernels import devices, registry, threads
from kernels.vector.gather import has_compiled_loops
from workbench.command.console import make_table
from workbench.data import cache
from workbench.measure import environment, machine, memory

# Installed frameworks, found by their metadata; none is imported, which would take seconds and start threads.
#
# What a version takes is a table of what was seen of it; of others the nearest older one is reported, and that it is
# that.
#
# >>> known_of("torch", "2.14.1")[0][:40]
# 'csr and csc over memory of NumPy, int32 '

MINIMUM_SKLEARN = (1, 6)
"""From here on estimators say by tags what they take."""


@dataclass(frozen=True)
class Facts:
    """A framework by the name of its distribution, and what its versions take, oldest first."""

    distribution: str
    title: str
    takes: Mapping[str, str]


@functools.cache
def known_frameworks() -> tuple[Facts, ...]:
    """Return the frameworks of the file `doctor.toml`, in its order; read once."""
    known = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return tuple(Facts(distribution, **facts) for distribution, facts in known.items())


@dataclass(frozen=True)
class Installed:
    """A framework that is there: its version, what that takes, and what to fix, "" if nothing."""

    title: str
    version: str
    takes: str
    advice: str = ""


def frameworks() -> list[Installed]:
    """Return the installed frameworks with version, what it accepts and advice, in the order of `doctor.toml`.

    Only package metadata is read; nothing is imported.
    """
    found = []
    for facts in known_frameworks():
        if (version := _version(facts.distribution)) is not None:
            takes, seen = known_of(facts.distribution, version)
            takes += "" if version.startswith(f"{seen}.") else f" (seen of {seen})"
            found.append(Installed(facts.title, version, takes, _advice(facts.distribution, version)))
    return found


def known_of(distribution: str, version: str) -> tuple[str, str]:
    """Return (what a version of a framework accepts, version that this was observed with).

    That of the newest observed version that is not newer, else of the oldest. StopIteration if the framework is
    unknown.
    """
    takes = next(facts.takes for facts in known_frameworks() if facts.distribution == distribution)
    older = [seen for seen in takes if _numbers(seen) <= _numbers(version)]
    seen = older[-1] if older else next(iter(takes))
    return takes[seen], seen


def _advice(distribution: str, version: str) -> str:
    """Return what to change about an installed version of a framework, "" if nothing."""
    if distribution == "keras" and (backend := keras_backend()) not in ("tensorflow", "jax"):
        return f"Its backend is {backend}, where sparse=True is not supported: set KERAS_BACKEND=tensorflow."
    if distribution == "scikit-learn" and _numbers(version) < MINIMUM_SKLEARN:
        return "The estimators of workbench.bridges.sklearn need 1.6: pip install -U scikit-learn."
    if distribution == "tensorflow" and _version("binsparse") and _numbers(_version("h5py") or "0") < (3, 16):
        return "binsparse needs h5py 3.16, and this TensorFlow an older one: keep them in two environments."
    return ""


def keras_backend() -> str:
    """Return the backend that Keras would use: `KERAS_BACKEND`, else its settings file's, else "tensorflow"."""
    if chosen := os.environ.get("KERAS_BACKEND"):
        return chosen
    file = Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras") / "keras.json"
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "tensorflow"
    return str(known.get("backend", "tensorflow")) if isinstance(known, dict) else "tensorflow"


def _version(distribution: str) -> str | None:
    """Return the installed version of a distribution, also of its build for CPU; None if it is not installed."""
    for name in (distribution, f"{distribution}_cpu", f"{distribution}-cpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _numbers(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version text, (2, 14) for "2.14.1rc0"."""
    parts = version.split(".")[:2]
    return tuple(int("".join(sign for sign in part if sign.isdigit()) or 0) for part in parts)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `advice` is empty if nothing needs fixing."""

    what: str
    found: str
    advice: str = ""


def examine() -> list[Finding]:
    """Return the findings of all checks; takes a second or two, changes nothing, starts no sweep."""
    checks = (_cpu, _cores, _memory, _blas, _numba, _find_compiled_code, _gpu, _cache, _versions, _entries, _frameworks)
    return [finding for check in checks for finding in check()]


def _cpu() -> list[Finding]:
    """Return two findings: the processor's name, and cache sizes by level."""
    levels = ", ".join(f"{name} {size.replace('K', ' KiB')}" for name, size in machine.caches().items())
    return [Finding("processor", machine.cpu_name()), Finding("caches", levels or "not reported by this system")]


def _cores() -> list[Finding]:
    """Return one finding: usable cores and load average; advice if the load is above half of the cores."""
    cores = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    load = os.getloadavg()[0]
    advice = ""
    if load > 0.5 * usable:
        advice = "Other programs are running; times measured now will be noisy. Wait, or stop them."
    summary = f"{usable} of {cores} usable, load {load:.1f}"
    return [Finding("cores", summary, advice)]


def _memory() -> list[Finding]:
    """Return one finding: available memory in GiB; advice if it is below 2 GiB."""
    available = memory.available_bytes()
    advice = "Dense baselines will not fit; free some memory." if available < 2 * 2**30 else ""
    return [Finding("memory available", f"{available / 2**30:.1f} GiB", advice)]


def _blas() -> list[Finding]:
    """Return one finding: loaded BLAS libraries with threads; advice if none or environment variables limit them.

    Runs a small product, so that BLAS is loaded.
    """
    np.ones((2, 2)) @ np.ones((2, 2))
    loaded = environment.loaded_libraries()
    if not loaded:
        return [Finding("BLAS", "none that threadpoolctl knows", "Dense times may be slow: install NumPy from PyPI.")]
    advice = ""
    if pins := environment.distorting_variables():
        named = " ".join(f"{name}={value}" for name, value in pins.items())
        advice = f"Held back by {named}: unset for your own work. Sweeps run without."
    shown = [f"{e['internal_api']} {e['version']} for {e['architecture']}, {e['num_threads']} threads" for e in loaded]
    return [Finding("BLAS", "; ".join(shown), advice)]


def _numba() -> list[Finding]:
    """Return one finding: Numba's threading layer and threads; advice if only the slow "workqueue" is available."""
    layers = threads.available_layers()
    chosen = threads.choose_layer()
    advice = ""
    if chosen == "workqueue":
        advice = "A parallel call costs ten times more than with OpenMP: install libgomp1 (Debian) or libgomp."
    summary = f"{chosen} (available: {', '.join(layers)}), {threads.get_threads()} threads"
    return [Finding("Numba threading layer", summary, advice)]


def _find_compiled_code() -> list[Finding]:
    """Return one finding: whether compiled code is in the cache; advice to run 'workbench warm' if not."""
    if has_compiled_loops():
        return [Finding("compiled code", "in the cache")]
    advice = "The first training of each kind waits until its code is compiled; 'workbench warm' does so now."
    return [Finding("compiled code", "none in the cache yet", advice)]


def _gpu() -> list[Finding]:
    """Return a list with one finding: name, capability, memory and versions of the GPU, or why there is none."""
    gpu = devices.probe()
    if not gpu.present:
        return [Finding("GPU", f"none: {gpu.reason}")]
    versions = ", ".join(f"{name} {version}" for name, version in gpu.versions.items())
    summary = f"{gpu.name} ({gpu.capability}), {gpu.bytes_memory / 2**30:.0f} GiB; {versions}"
    return [Finding("GPU", summary)]


def _cache() -> list[Finding]:
    """Return one finding: the folder of the data cache; advice if it cannot be written."""
    folder = cache.cache_folder()
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    advice = "" if os.access(parent, os.W_OK) else "It cannot be written; set WORKBENCH_CACHE to a folder that can."
    return [Finding("data cache", str(folder), advice)]


def _entries() -> list[Finding]:
    """Return one finding: how many kernels, formats, operators and data sets there are, and why some are missing."""
    there = [f"{len(known.names())} {known.kind}s" for known in registry.registries if known.packages]
    broken = [reason for known in registry.registries for reason in known.unavailable().values()]
    package = Path(kernels.__file__).parent
    return [Finding("kernels", f"{', '.join(there)}; from {package}", " ".join(broken))]


def _versions() -> list[Finding]:
    """Return one finding: versions of the libraries that trials use."""
    return [Finding("versions", ", ".join(f"{name} {version}" for name, version in machine.versions().items()))]


def _frameworks() -> list[Finding]:
    """Return a finding for each installed framework, or a finding that there is none; nothing is imported."""
    there = [
        Finding(framework.title, f"{framework.version}: {framework.takes}", framework.advice)
        for framework in frameworks()
    ]
    return there or [Finding("frameworks", "none of those that there are bridges to")]


def findings_table(findings: Iterable[Finding]) -> Table:
    """Return a table of findings, each with what to fix below it, those with advice in yellow."""
    known = list(findings)
    rows = [(each.what, f"{each.found}\nto fix: {each.advice}" if each.advice else each.found) for each in known]
    return make_table(
        ("what", "found, and what to fix"), rows, styles=["yellow" if each.advice else None for each in known]
    )
