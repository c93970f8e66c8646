"""Several machines in one report: nothing crosses them, and what both measured tells how they differ."""

from dataclasses import replace

import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import advise, compare_devices, configurations
from workbench.reports import report


def two_machines() -> list[dict]:
    """Machine a has all densities; b, on which all takes twice as long, the first of them."""
    slow = [replace(law, fixed=2 * law.fixed, slope=2 * law.slope) for law in (maker.DENSE, maker.SPARSE)]
    return [
        *maker.sweep(machine="a", run="r on a", seconds_sentinel=1e-3, noise=0.01),
        *maker.sweep(slow, maker.DENSITIES[:1], machine="b", run="r on b", seconds_sentinel=2e-3, noise=0.01, seed=1),
    ]


def test_machines_are_groups_of_their_own_and_are_held_beside_each_other():
    frame = store.frame(two_machines())
    assert [{row["machine"] for row in group.rows} for group in configurations.groups(frame)] == [{"a"}, {"b"}]
    a, b = compare_devices.machines(frame)
    assert (a.name, a.configurations, a.seconds_work, a.common) == ("a", 12, 1e-3, ())
    assert (b.name, b.configurations, b.seconds_work) == ("b", 2, 2e-3)
    assert [change.ratio.value for change in b.common] == pytest.approx([2, 2], rel=0.1)
    assert "On machine b 2 configurations that a measured, too, are: 2 slower." in advise(frame).would_change


def test_machines_without_a_configuration_in_common_say_so():
    apart = [*maker.sweep(machine="a"), *maker.sweep(machine="b", densities=[0.5], run="r2")]
    assert list(compare_devices.compare_machine_sentences(store.frame(apart))) == [
        "Machine b shares no timed configuration with the first, so how they differ is unknown."
    ]
    assert compare_devices.table(store.frame(maker.sweep())) == ([], [])


def test_the_report_has_the_machines_beside_each_other(tmp_path, no_charts):
    given = {"title": "t", "command": "c", "machine": {"a": {"id": "a"}, "b": {"id": "b"}}}
    page = report.html(store.frame(two_machines()), tmp_path / "r.html", **given).read_text()
    assert "The machines compared" in page
    text = report.markdown(store.frame(two_machines()), tmp_path / "r.md", **given).read_text()
    assert "| what | a | b |" in text
    assert "| fixed work of NumPy | 1 ms | 2 ms |" in text
