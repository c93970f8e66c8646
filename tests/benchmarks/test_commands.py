"""`benchmarks cluster` tells rows as they come, parts of what is predicted among them."""

from benchmarks import commands as bench
from benchmarks import tables


def test_a_predicted_step_is_told_with_its_parts_and_a_measured_one_without():
    predicted = {"seconds_step": 0.02, "seconds_computing": 0.01, "seconds_network": 0.008, "seconds_waiting": 0.002}
    rows = [
        tables.CLUSTER.new_row(part="step", what="step 2", **known) for known in (predicted, {"seconds_step": 0.03})
    ]
    assert [bench.describe_cluster_record(row) for row in rows] == [
        "step 2: 20 ms (computing 10, messages 8, waiting 2)",
        "step 2: 30 ms",
    ]
