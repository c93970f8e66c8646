"""The one registry: first look-ups from threads, interrupted ones, files that cannot be imported, names taken twice."""

import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

import kernels
from kernels.registry import Registry
from tests.support.processes import printed
from workbench import data, formats, models, ops, optimizers, plots

REGISTRIES = (kernels, formats, ops, data, models, optimizers, plots)


def registry() -> Registry:
    return Registry("thing", (), KeyError)


def folder(tmp_path: Path, **files: str) -> None:
    """A package `things` with these files beside its own registry."""
    (tmp_path / "things").mkdir()
    (tmp_path / "things" / "__init__.py").write_text(
        "from kernels.registry import Registry\n_things = Registry('thing', ('things',), KeyError)\n"
        "register, names, get, unavailable = _things.register, _things.names, _things.get, _things.unavailable\n"
    )
    for name, text in files.items():
        head = "from types import SimpleNamespace as Entry\nfrom things import get, register\n"
        (tmp_path / "things" / f"{name}.py").write_text(head + textwrap.dedent(text))


def output(tmp_path: Path, code: str) -> list[str]:
    """What a fresh interpreter prints that finds `things`."""
    code = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{textwrap.dedent(code)}"
    return printed(code).splitlines()


def test_name_that_is_taken_is_refused() -> None:
    things = registry()
    things.register(SimpleNamespace(name="a"))
    with pytest.raises(KeyError, match=r"A thing named 'a' is already registered; choose another name\. Taken are: a"):
        things.register(SimpleNamespace(name="a"))


def test_unknown_name_lists_what_there_is() -> None:
    things = registry()
    for name in "ba":
        things.register(SimpleNamespace(name=name))
    assert things.names() == ["a", "b"]
    with pytest.raises(KeyError, match=r"Unknown thing 'c'.*Expected one of: a, b"):
        things.get("c")


@pytest.mark.parametrize("entries", REGISTRIES, ids=lambda module: module.__name__)
def test_every_file_of_this_project_can_be_imported(entries) -> None:
    assert entries.unavailable() == {}
    assert entries.names()


def test_first_look_up_from_several_threads_finds_everything(tmp_path: Path) -> None:
    folder(tmp_path, a="import time; time.sleep(.2); register(Entry(name='a'))", z="register(Entry(name='z'))")
    code = """
        import threading, things
        found, start = [], threading.Barrier(4)
        def look(name):
            start.wait()
            found.append(things.get(name).name)
            found.append(",".join(things.names()))
        threads = [threading.Thread(target=look, args=(name,)) for name in "azaz"]
        [thread.start() for thread in threads]; [thread.join() for thread in threads]
        print(*sorted(found))
    """
    assert output(tmp_path, code) == ["a a a,z a,z a,z a,z z z"]


def test_thread_that_imports_an_entry_itself_does_not_wait_for_a_scan_that_waits_for_it(tmp_path: Path) -> None:
    folder(
        tmp_path, a="register(Entry(name='a'))", z="import time; time.sleep(.3); get('a'); register(Entry(name='z'))"
    )
    code = """
        import threading, time, things
        direct = threading.Thread(target=lambda: __import__("things.z"))
        direct.start(); time.sleep(.1)
        print(things.get("z").name, things.names())
        direct.join(60)
        print(direct.is_alive())
    """
    assert output(tmp_path, code) == ["z ['a', 'z']", "False"]


def test_interrupted_look_up_is_made_again(tmp_path: Path) -> None:
    """Also by the file that was interrupted after it had registered an entry."""
    stop = (
        "register(Entry(name='b'))\nimport sys\nif not hasattr(sys, 'once'):\n    sys.once = 1; raise KeyboardInterrupt"
    )
    folder(tmp_path, a="register(Entry(name='a'))", b=stop, c="register(Entry(name='c'))")
    code = """
        import things
        try: things.names()
        except KeyboardInterrupt: print("interrupted")
        print(things.get("c").name, things.names(), things.unavailable())
    """
    assert output(tmp_path, code) == ["interrupted", "c ['a', 'b', 'c'] {}"]


@pytest.mark.parametrize("milliseconds", [10, 70, 170])
def test_interrupt_at_any_time_of_the_first_look_up_of_kernels(milliseconds: int, tmp_path: Path) -> None:
    """It comes after the look-up: Numba does not import again where its import was cut short."""
    code = f"""
        import os, signal, threading, kernels
        interrupt = threading.Timer({milliseconds / 1000}, lambda: os.kill(os.getpid(), signal.SIGINT))
        try: interrupt.start(); kernels.names(); threading.Event().wait(60)
        except KeyboardInterrupt: print("interrupted")
        print(kernels.get("csr_t_dense").name, len(kernels.names()), kernels.unavailable())
        print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    """
    assert output(tmp_path, code) == ["interrupted", f"csr_t_dense {len(kernels.names())} {{}}", "True"]


def test_file_that_cannot_be_imported_is_unavailable_and_the_others_are_there(tmp_path: Path) -> None:
    broken = "register(Entry(name='half'))\nraise OSError('libbroken.so: no such file')"
    folder(
        tmp_path,
        a="register(Entry(name='a'))",
        broken=broken,
        lost="import nowhere_at_all",
        z="register(Entry(name='z'))",
    )
    code = """
        import things
        print(things.names(), sorted(things.unavailable()))
        for name in ("broken", "half", "none"):
            try: things.get(name)
            except KeyError as error: print(error)
    """
    names, named, *others = output(tmp_path, code)
    assert names == "['a', 'z'] ['broken', 'lost']"
    reason = "things.broken could not be imported: OSError: libbroken.so: no such file (broken.py, line 4)."
    assert f"The thing 'broken' is unavailable: {reason}" in named
    for message in others:
        assert "Expected one of: a, z. Unavailable is what these files have: broken: " in message
        assert reason in message
        assert "No module named 'nowhere_at_all'" in message


@pytest.mark.parametrize("name", ["add", "add_rows", "add.rows"])
def test_look_up_imports_only_the_file_named_like_the_entry_or_its_beginning(name: str, tmp_path: Path) -> None:
    folder(tmp_path, add=f"register(Entry(name={name!r}))", z="register(Entry(name='z'))")
    code = f"import things\nprint(things.get({name!r}).name, 'things.z' in sys.modules, things.names())"
    assert output(tmp_path, code) == [f"{name} False {[name, 'z']}"]


@pytest.mark.parametrize(("module", "name"), [("workbench.models", "logistic"), ("workbench.data", "npz")])
def test_names_of_files_are_listed_and_looked_up_without_the_other_files(module, name) -> None:
    code = f"""
        import sys, {module} as entries
        listed = entries.names()
        loaded = [name for name in listed if entries.get({name!r}) and any(n.endswith("." + name) for n in sys.modules)]
        entries.unavailable()
        print({name!r} in listed, len(loaded) < len(listed) / 2, entries.names() == listed)
    """
    assert printed(code).split() == ["True", "True", "True"]


def test_names_that_are_listed_by_files_are_those_of_the_entries() -> None:
    code = """
        import workbench.panels.tabs, workbench.plots.chart, workbench.data.exports
        from workbench import data, formats, models, ops, optimizers
        from kernels.registry import registries
        listed = {registry.kind: registry.names() for registry in registries if registry.is_named_by_files}
        for registry in registries:
            registry.scan()
            if registry.kind in listed:
                assert registry.names() == listed[registry.kind], registry.kind
        print(len(listed))
    """
    assert int(printed(code)) >= 4


def test_second_file_of_a_name_is_unavailable(tmp_path: Path) -> None:
    folder(tmp_path, a="register(Entry(name='a'))", b="register(Entry(name='a'))")
    (line,) = output(tmp_path, "import things\nprint(things.names(), things.unavailable())")
    assert line.startswith("['a'] {'b': ")
    assert "is already registered; choose another name. Taken are: a" in line
    assert "(b.py, line 3)" in line
