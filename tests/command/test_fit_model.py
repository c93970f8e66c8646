"""`bench fit` takes the model that suits the labels of a file, as `train` and `advise` do."""

from workbench.command import bench


def test_the_model_of_a_file_is_guessed_from_its_labels(tmp_path):
    (tmp_path / "n.txt").write_text("".join(f"{row / 7:.3f} {1 + row % 5}:1\n" for row in range(60)))
    (tmp_path / "c.txt").write_text("".join(f"{row % 3} {1 + row % 5}:1\n" for row in range(60)))
    found = {name: bench.fit_case_of(str(tmp_path / name), "0.2", {}).model for name in ("n.txt", "c.txt")}
    assert found == {"n.txt": "linear", "c.txt": "softmax"}
