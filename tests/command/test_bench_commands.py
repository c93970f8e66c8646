"""`bench cluster` tells rows as they come; `bench fit` takes the model that suits the labels of a file."""

from workbench import store
from workbench.command import bench


def test_a_predicted_step_is_told_with_its_parts_and_a_measured_one_without():
    predicted = {"seconds_step": 0.02, "seconds_computing": 0.01, "seconds_network": 0.008, "seconds_waiting": 0.002}
    rows = [store.CLUSTER.new_row(part="step", what="step 2", **known) for known in (predicted, {"seconds_step": 0.03})]
    assert [bench.describe_cluster_record(row) for row in rows] == [
        "step 2: 20 ms (computing 10, messages 8, waiting 2)",
        "step 2: 30 ms",
    ]


def test_the_model_of_a_file_is_guessed_from_its_labels(tmp_path):
    (tmp_path / "n.txt").write_text("".join(f"{row / 7:.3f} {1 + row % 5}:1\n" for row in range(60)))
    (tmp_path / "c.txt").write_text("".join(f"{row % 3} {1 + row % 5}:1\n" for row in range(60)))
    found = {name: bench.fit_case_of(str(tmp_path / name), "0.2", {}).model for name in ("n.txt", "c.txt")}
    assert found == {"n.txt": "linear", "c.txt": "softmax"}
