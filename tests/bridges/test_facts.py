"""Every fact about a library is what the installed release does, as its probe shows."""

import importlib
import importlib.metadata
import inspect
import re
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version

from workbench.bridges import facts
from workbench.bridges.contracts import CONTRACTS

PROBES = Path(__file__).parent / "probes"
ALL = [fact for library in facts.libraries().values() for fact in library.facts.values()]


def installed_version(fact):
    """The version of the library of a fact; skips if it is absent."""
    probes_of(fact.library)
    distribution = facts.libraries()[fact.library].distribution
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:  # TensorFlow without CUDA has a name of its own
        return importlib.metadata.version(f"{distribution}-cpu")


def probes_of(library):
    """The probes of a library by name: the functions of its file that are named like a fact; skips if it is absent."""
    known = facts.libraries()[library]
    for module in known.modules:
        pytest.importorskip(module, reason=f"needs {known.distribution}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(f"tests.bridges.probes.{library}")


def require_as_stated(fact, probe):
    """Fail with the file, the sentence and the installed version if a probe does not show what a fact says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = probe()
    if seen != fact.outcome:
        pytest.fail(
            f"{fact.library} {installed_version(fact)} says {seen!r}, but workbench/bridges/facts/{fact.library}.toml, "
            f"[facts.{fact.name}], says {fact.outcome!r} of {', '.join(fact.versions)}.\n"
            f"The sentence to change: {fact.sentence}"
        )


@pytest.mark.parametrize("fact", ALL, ids=lambda fact: f"{fact.library}-{fact.name}")
def test_a_fact_is_what_the_installed_release_does(fact):
    installed = installed_version(fact)
    if fact.since and Version(installed) < Version(fact.since):
        pytest.skip(f"stated from {fact.since} on, {installed} is installed")
    if fact.until and Version(installed) >= Version(fact.until):
        pytest.skip(f"stated of releases before {fact.until}, {installed} is installed")
    require_as_stated(fact, getattr(probes_of(fact.library), fact.name))


def test_every_fact_has_a_probe_and_every_file_of_probes_its_facts():
    files = {path.stem: path.read_text(encoding="utf-8") for path in PROBES.glob("*.py")}
    assert set(files) == set(facts.libraries())
    for fact in ALL:
        assert f"\ndef {fact.name}():\n" in files[fact.library], f"{fact.library}: no probe {fact.name}"


@pytest.mark.parametrize("library", facts.libraries())
def test_a_probe_without_a_fact_is_a_helper_of_others(library):
    module = probes_of(library)
    source = inspect.getsource(module)
    for name, function in vars(module).items():
        own = inspect.isfunction(function) and function.__module__ == module.__name__
        if own and name not in facts.of(library):
            assert len(re.findall(rf"\b{name}\(", source)) > 1, f"{library}: {name} is no fact, and nothing calls it"


def test_a_fact_that_changed_fails_with_the_sentence_to_change():
    fact = facts.of("scipy")["division_by_a_number"]
    probe = getattr(probes_of("scipy"), fact.name)
    with pytest.raises(pytest.fail.Exception) as failed:
        require_as_stated(replace(fact, outcome="sparse", sentence="x / 2 stays float32"), probe)
    text = str(failed.value)
    assert "scipy.toml" in text
    assert "The sentence to change: x / 2 stays float32" in text
    assert installed_version(fact) in text
    assert "'costly'" in text


def test_facts_are_complete():
    assert len(ALL) >= 40
    rules = {contract.name for contract in CONTRACTS}
    for fact in ALL:
        assert fact.outcome in facts.OUTCOMES, fact
        assert fact.source.startswith("https://"), fact
        assert all((fact.operation, fact.sentence, fact.cure, fact.versions)), fact
        assert not fact.sentence.endswith("."), fact
        assert fact.rule in {"", *rules}, fact
        assert [*fact.versions] == sorted(fact.versions, key=Version), fact
        assert not fact.since or Version(fact.since) <= Version(fact.versions[0]), fact
        assert not fact.until or Version(fact.versions[-1]) < Version(fact.until), fact
    assert len({(fact.library, fact.name) for fact in ALL}) == len(ALL)


def test_an_unknown_library_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"Expected one of: anndata, catboost"):
        facts.of("theano")
