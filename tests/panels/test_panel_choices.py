"""The choices of the panel and the notebook: what they become, how slips are told, and the fields that show them."""

import re

import pytest

from tests.support import rows as made
from tests.support.panel_runs import inputs, text, write_run
from workbench import store
from workbench import study as choices
from workbench.measure.rounds import FIRST, MOST
from workbench.panels import lab, pages
from workbench.panels.panel import Panel
from workbench.sweeps import grid
from workbench.sweeps.estimate import SECONDS_OVERHEAD
from workbench.sweeps.spec import Configuration, Measure, SpecError

pytestmark = pytest.mark.usefixtures("no_charts")


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    """A panel in a folder of its own for tests that leave its choices as they were."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("panel"))
        made = Panel(lab.study())
        yield made
        made.close()


def sparse_of(study) -> list[dict]:
    """The sparse configurations of a study."""
    return [candidate for candidate in study.spec().candidates if candidate["format"] != "dense"]


def dense_of(*holds: str) -> list[dict]:
    """The dense configurations that the default model has on the CPU, with the data held in these ways."""
    return [way for way in choices.dense_configurations(holds) if not grid.why_dropped(Configuration(**way))]


def test_choices_become_exactly_the_configurations_that_were_asked_for(here):
    study = lab.study(
        format=["csr", "coo"],
        storage=["same"],
        engine=["ours", "vendor"],
        update=["lazy", "standard"],
        execution=["step"],
        width=[4, 16],
    )
    spec = study.spec()
    made_of = [tuple(candidate.values()) for candidate in sparse_of(study)]
    assert made_of == [
        ("csr", "ours", "lazy", "fused"),
        ("csr", "ours", "standard", "dense"),
        ("csr", "vendor", "standard", "dense"),
        ("coo", "ours", "lazy", "fused"),
        ("coo", "ours", "standard", "dense"),
        ("coo", "vendor", "standard", "dense"),
    ]
    assert list(spec.candidates[len(made_of) :]) == dense_of()
    configurations = len(grid.expand_grid(spec).configurations)
    assert study.planned.rest == (FIRST * configurations, MOST * configurations)


def test_a_step_in_one_graph_is_a_configuration_of_its_own_where_there_is_one(here):
    study = lab.study(execution=["step", "cuda_graph"], engine=["ours", "vendor"], update=["lazy", "standard"])
    graphs = [candidate for candidate in sparse_of(study) if candidate.get("execution") == "cuda_graph"]
    assert graphs == [
        {"format": "csr", "engine": "ours", "update": "lazy", "gradient": "fused", "execution": "cuda_graph"}
    ]
    assert len(sparse_of(study)) == 4
    assert {**choices.BASELINE, "execution": "cuda_graph"} in study.spec().candidates


def test_epochs_in_one_call_are_a_configuration_of_their_own_where_there_are_some(here):
    study = lab.study(execution=["step", "epoch"], engine=["ours", "vendor"], update=["lazy", "standard"])
    calls = [candidate for candidate in sparse_of(study) if candidate.get("execution") == "epoch"]
    line = {"format": "csr", "engine": "ours", "execution": "epoch"}
    assert calls == [line | {"gradient": "row_sparse", "update": update} for update in ("lazy", "standard")]


def test_dense_is_measured_in_all_the_ways_that_may_be_its_best(here):
    assert choices.dense_configurations(["csr"]) == [
        choices.BASELINE,
        choices.BASELINE | {"execution": "epoch"},
        choices.BASELINE | {"storage": "csr"},
        choices.BASELINE | {"storage": "csr", "execution": "epoch"},
    ]
    dense = [candidate for candidate in lab.study().spec().candidates if candidate["format"] == "dense"]
    assert dense == dense_of("csr")


def test_ways_that_a_model_has_not_are_left_out_as_long_as_others_are_there(here):
    chosen = {"dataset": "uniform", "model": "factorization_machine_logistic", "width": "8"}
    study = lab.study(**chosen)
    assert {candidate.get("execution") for candidate in study.spec().candidates} == {None}
    assert study.planned.without == ""
    with pytest.raises(SpecError, match="Epochs in one call are for"):
        lab.study(**chosen, execution="epoch")


@pytest.mark.parametrize("format", choices.sparse_formats())
def test_dense_is_measured_beside_every_format(here, format):
    candidates = lab.study(format=[format]).spec().candidates
    assert choices.BASELINE in candidates
    assert {candidate["format"] for candidate in candidates} == {format, "dense"}


def test_numbers_are_read_as_people_write_them(here):
    assert lab.study(density="1 %, 0.5; natural").spec().axes["density"] == (0.01, 0.5, None)
    assert lab.study(density="[0.01, 0.1]").spec().axes["density"] == (0.01, 0.1)
    assert lab.study(features=None).spec().axes.get("features") is None
    assert lab.study(features="1_000").spec().axes["features"] == (1000,)


@pytest.mark.parametrize(
    ("chosen", "output"),
    [
        ({"density": "0.1, lots"}, " = '0.1, lots': 'lots' is not a number"),
        ({"density": "2"}, " = 2.0: Input should be less than or equal to 1"),
        ({"width": "1.5"}, " = '1.5': '1.5' is not a whole number"),
        ({"rounds": "1, 2"}, " = '1, 2': expected one number"),
        ({"format": []}, ": none is chosen; expected one or more of: csr,"),
        ({"format": "cscr"}, "Unknown value 'cscr'. Did you mean 'csr'? Expected one of: csr,"),
        ({"dataset": "stdlb"}, "Unknown value 'stdlb'. Did you mean 'stdlib'? Expected one of: "),
        ({"model": "logistic", "width": 16}, "do not go together: The logistic model has width 1."),
        ({"model": "logistic", "width": [1, 16], "threads": 2}, "configurations: The logistic model has width 1"),
        ({"dataset": "npz"}, "The data set npz needs "),
        ({"format": "row_sparse", "engine": "vendor"}, " = 'row_sparse': there is none with these kernels and updates"),
    ],
)
def test_wrong_choices_are_told_in_words_and_nothing_is_lost(panel, chosen, output):
    with pytest.raises(SpecError) as error:
        lab.study(**chosen)
    assert output in str(error.value)
    panel.state.choose(**chosen)
    assert pages.html.escape(output) in text(panel)
    assert panel.run.disabled
    assert panel.state.planned is None
    panel.state.choose(**lab.study().choices)
    assert output not in text(panel)
    assert not panel.run.disabled


def test_what_trains_on_cpu_alone_is_left_out_on_cuda_and_said_so(here, opened):
    chosen = {"format": "csc", "engine": "ours", "update": "lazy", "density": "0.1", "rounds": 1, "threads": 1}
    study = lab.study(**chosen, device=["cuda", "cpu"])
    dense = len(grid.expand_grid(study.spec()).configurations) - 1
    assert study.planned.rest == (1 + dense, 1 + dense)
    assert "On cuda no csc trains by engine ours" in study.planned.without
    assert lab.study(**chosen).planned.without == ""
    assert pages.html.escape(study.planned.without) in text(opened(study))
    with pytest.raises(SpecError, match="do not go together for 1 of 2 configurations: On cuda no csc trains"):
        lab.study(**chosen, device="cuda")


def test_several_slips_are_told_at_once(here):
    with pytest.raises(SpecError, match=r"(?s)density = 'a'.*\nwidth = 'b'"):
        lab.study(density="a", width="b")


def test_unknown_choices_are_refused(here):
    with pytest.raises(SpecError, match=r"Unknown setting 'densty'. Did you mean 'density'"):
        lab.study(densty=[0.1])


def test_smoke_is_small_whatever_was_chosen(here):
    study = lab.study(
        smoke=True, density=[0.001, 0.01, 0.1], width=[4, 64], features=None, rows=10**6, rounds=5, threads=1
    )
    spec = study.spec()
    assert study.name.endswith("-smoke")
    assert spec.axes["density"] == (0.001, 0.01)
    assert (spec.axes["rows"], spec.axes["features"], spec.axes["width"]) == ((2000,), (512,), (4,))
    configurations = len(grid.expand_grid(spec).configurations)
    assert configurations == 2 * len(spec.candidates)
    assert (spec.measure.rounds, study.planned.rest) == (1, (configurations, configurations))


def test_the_plan_tells_trials_configurations_and_time(here, opened):
    one = {"update": "lazy", "engine": "ours", "execution": "step", "storage": "same"}
    panel = opened(lab.study(density=[0.1], rounds=6, trial_seconds=1, threads=1, **one))
    least, configurations = 0.2 + Measure().seconds_warmup + SECONDS_OVERHEAD, 1 + len(dense_of())
    seconds = FIRST * configurations * least, 6 * configurations * (least + 0.8)
    assert panel.state.planned.seconds == pytest.approx(seconds)
    assert f"{FIRST * configurations} to {6 * configurations} trials; Run takes " in text(panel)
    assert "6 rounds can tell apart" in text(panel)
    assert "sparse, lazy, fused gradient; dense" in text(panel)


def test_a_changed_field_changes_the_state(here, opened):
    panel = opened(lab.study())
    fields = panel.form.fields
    fields["dataset"].inputs[0].value = "power_law"
    fields["density"].inputs[0].value = "0.5"
    next(box for box in fields["format"].inputs if box.description == "coo").value = True
    spec = panel.state.spec()
    assert spec.axes["dataset"] == ("power_law",)
    assert spec.axes["density"] == (0.5,)
    assert {candidate["format"] for candidate in spec.candidates} == {"csr", "coo", "dense"}


@pytest.mark.parametrize("choice", choices.CHOICES.values(), ids=lambda choice: choice.name)
def test_every_choice_has_a_field_that_shows_the_state(panel, choice):
    known = choices.options_of(choice)
    other = {"one": known[:1] and known[0], "many": known}.get(choice.widget, "7")
    panel.state.choose(**{choice.name: other})
    assert panel.form.fields[choice.name].value == other
    panel.state.choose(**lab.study().choices)


def test_no_control_lacks_a_description_or_a_tooltip(here, opened):
    panel = opened(lab.study())
    assert len(inputs(panel)) > 20
    assert not [widget for widget in inputs(panel) if not widget.description or not widget.tooltip]
    assert not [widget for widget in inputs(panel) if getattr(widget, "icon", "")]


def test_fields_cannot_be_changed_while_a_run_is_alive(here, opened):
    study = lab.study()
    panel = opened(study)
    write_run(study.folder, made.sweep())
    panel.step()
    assert all(field.disabled for field in panel.form.fields["format"].inputs)
    write_run(study.folder, made.sweep(), "finished")
    panel.step()
    assert not any(field.disabled for field in panel.form.fields["format"].inputs)


def test_every_letter_in_the_tables_of_an_answer_is_explained():
    shown, _ = pages.answer(store.frame(made.rich()))
    tables, _, letters = shown.partition("Letters of the candidates")
    named = dict(re.findall(r">([SD]\d)</td><td[^>]*>([^<]+)</td>", letters))
    assert set(re.findall(r">([SD]\d)<", tables)) <= set(named)
    assert len(set(named.values())) == len(named) > 2
