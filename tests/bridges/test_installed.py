"""Frameworks are told by their metadata, with what is known of the version nearest to theirs."""

import pytest

from tests.support.processes import printed
from workbench.command import doctor


def of(monkeypatch, **versions):
    """The frameworks where these distributions are installed."""
    monkeypatch.setattr(doctor, "_version", lambda name: versions.get(name.replace("-", "_")))
    return {framework.title: framework for framework in doctor.frameworks()}


def test_nothing_is_imported_to_tell_what_is_there():
    code = "from workbench.command import doctor; doctor.frameworks(); import sys; print(*sys.modules)"
    loaded = {name.split(".")[0] for name in printed(code).split()}
    assert not loaded & {"torch", "tensorflow", "keras", "sklearn", "implicit"}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.13.0", "refuses sparse gradients"),
        ("2.14.1", "takes sparse gradients"),
        ("2.20.0", "(seen of 2.14)"),
        ("2.7.1", "(seen of 2.13)"),
    ],
)
def test_a_version_is_told_by_the_nearest_that_was_seen(monkeypatch, version, expected):
    assert expected in of(monkeypatch, torch=version)["PyTorch"].takes


def test_a_backend_of_keras_without_sparse_input_is_to_be_fixed(monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    assert not of(monkeypatch, keras="3.15.1")["Keras"].advice
    (tmp_path / "keras.json").write_text('{"backend": "torch"}')
    assert "set KERAS_BACKEND=tensorflow" in of(monkeypatch, keras="3.15.1")["Keras"].advice
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert not of(monkeypatch, keras="3.15.1")["Keras"].advice
    monkeypatch.delenv("KERAS_BACKEND")
    (tmp_path / "keras.json").write_text("[not json")
    assert not of(monkeypatch, keras="3.15.1")["Keras"].advice


def test_versions_that_do_not_go_together_are_to_be_fixed(monkeypatch):
    there = {"tensorflow": "2.21.0", "h5py": "3.14.0"}
    assert not of(monkeypatch, **there)["TensorFlow"].advice
    assert "two environments" in of(monkeypatch, **there, binsparse="0.1.4")["TensorFlow"].advice
    assert "need 1.6" in of(monkeypatch, scikit_learn="1.5.2")["scikit-learn"].advice
    assert not of(monkeypatch, scikit_learn="1.10.0")["scikit-learn"].advice


def test_the_doctor_tells_them(monkeypatch):
    of(monkeypatch, torch="2.14.1")
    results = [finding for finding in doctor._frameworks() if finding.what == "PyTorch"]
    assert results[0].found.startswith("2.14.1: csr and csc")
    of(monkeypatch)
    assert "none" in doctor._frameworks()[0].found
