"""Docstrings of the public API follow numpydoc: parameters, results, errors and an example that runs."""

import pytest

validate = pytest.importorskip("numpydoc.validate").validate

CHECKS = {"GL08", "SS01", "SS03", "SS05", "PR01", "PR02", "PR03", "RT01", "EX01"}
"""Docstring, one summary that ends in a period and begins with a verb, every parameter, the result, an example."""

NAMES = {
    "workbench.autodiff": "gradients",
    "workbench.data": "keep_features keep_rows rows_between shuffle_rows split take",
    "workbench.executor": "Executor.backward Executor.explain Executor.forward Executor.release bind",
    "workbench.formats": (
        "Format RowSparse RowSparse.assemble RowSparse.check RowSparse.from_dense RowSparse.from_rows RowSparse.retain "
        "RowSparse.toarray assign astype check coerce copy format_of load load_about nbytes predicted_bytes save "
        "to_format validate zeros"
    ),
    "workbench.graph": (
        "Explanation Graph.arguments Graph.explain Graph.infer Graph.nodes Graph.outputs Graph.to_json Group constant "
        "from_json scope variable"
    ),
    "workbench.metrics": (
        "Composite Metric accuracy auc binary_accuracy constant_quality constant_scores create cross_entropy f1_macro "
        "f1_micro log_loss logit_loss mae mse ndcg_at precision_at r2 recall_at rmse"
    ),
    "workbench.models": "glorot he default_model",
    "workbench.module": (
        "Module Module.backward Module.bind Module.forward Module.set_optimizer Module.update Module.weights"
    ),
    "workbench.ops.contract": "Rule",
    "workbench.ops.fallback": "recording settings",
    "workbench.ops.products": "make_plan",
    "workbench.optimizers": (
        "Multiplier Optimizer Optimizer.new_states Optimizer.resolve Updater Updater.catch_up Updater.from_settings "
        "Updater.load_state_dict Updater.replace Updater.state_dict Updater.update by_rule"
    ),
    "workbench.optimizers.schedules": "Schedule.rate StepDecay from_json to_json",
}
PUBLIC = [f"{module}.{name}" for module, names in NAMES.items() for name in names.split()]


def faults(name: str) -> list[str]:
    """Violations of `CHECKS` in the docstring of a public name."""
    return [f"{code}: {message}" for code, message in validate(name)["errors"] if code in CHECKS]


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring_has_the_sections_of_numpydoc(name: str):
    assert not faults(name)


def test_a_docstring_without_sections_is_found():
    assert any(fault.startswith("PR01") for fault in faults("tests.project.test_docstrings.faults"))
