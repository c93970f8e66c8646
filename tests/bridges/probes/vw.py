"""Probes of Vowpal Wabbit: what `workbench/bridges/facts/vw.toml` says, on the installed release."""

import vowpalwabbit

from tests.support.probes import refusal


def labels_of_logistic():
    def learned(label):
        vowpalwabbit.Workspace("--loss_function logistic --quiet").learn(f"{label} | a:1 b:2")

    outcomes = {refusal(lambda: learned(label), ValueError, RuntimeError) for label in ("0", "7", "abc")}  # noqa: B023
    return "wrong" if outcomes == {"sparse"} else "refuses"
