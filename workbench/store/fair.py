"""The columns of a record of `bench fair`: a candidate in a configuration, timed beside all others."""

from workbench.store.table import Table

_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text hash of configuration, policy, candidates and code; resuming skips a key that is done
        time text when it ended, ISO 8601
        status text ok, unsupported, skipped, failed, timeout, memory or wrong
        reason text why the status is not ok; empty when it is
    """,
    "setting": """
        configuration text name of the configuration
        model text logistic of one output, softmax of several
        features integer D
        batch_rows integer rows a batch
        width integer N
        density number share of values that are stored, as asked for
        rows integer rows of the data
        seed integer draws rows, labels and order
        candidate text who trains
        side text project or independent
        kind text dense or sparse: how X is held for its products
        note text what of its work differs from that of the others; empty if nothing does
        threads integer threads allowed
    """,
    "measured": """
        nnz integer stored entries of the data
        batches integer batches of an epoch
        batches_checked integer batches after which weights, intercept and losses were compared
        error number largest error of these, relative to float64 loops
        error_allowed number largest error allowed
        seconds_ready number seconds until the first run had ended and was checked, compiling included
        batches_call integer batches of a timed call, about
        samples numbers seconds a batch of rounds 0, 1, and so on
        seconds number seconds a batch, median of the rounds
        seconds_low number lower bound of the interval of the median
        seconds_high number upper bound of the interval of the median
        busy_others number share of all cores that other programs took during the rounds
        machine text id of the machine
        versions mapping version of each library used
        source text hash of the code of all candidates
        not_finite names columns where a NaN or infinity was replaced by null when the record was stored
    """,
}

FAIR = Table.of("fair", "bench-fair.jsonl", 1, _TABLE)
