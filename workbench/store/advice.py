"""The columns of a case of advice: what was recommended, and a full sweep of the same data to judge it by."""

from workbench.store.table import Table

_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text hash of the settings of all cells of the case, and of the code that they use
        time text when it ended, ISO 8601
        status text ok, or failed
        reason text why the status is not ok; empty when it is
    """,
    "setting": """
        case text name of the case: a data set and a model
        data text settings of the data; cases of equal ones are left out together
        dataset text data set that is trained on
        model text model that is trained
        optimizer text rule by which a gradient changes the weights
        batch_rows integer rows of the data in each training step
    """,
    "measured": """
        rows integer rows of the data
        features integer D
        width integer N
        density number nnz / size
        bytes_csr integer bytes of X as csr
        bytes_dense integer bytes of X dense
        cells records every cell of the sweep: format, hold, engine, gradient, update, launch, serial, status, seconds \
of a step (geometric mean of its rounds), bytes at its peak, whether it trains the model that dense does
        recommended mapping format, hold, engine, gradient, update, launch and serial of the cell that was recommended
        verdict text sparse, dense, level or undecided, as the advice has it
        seconds_sweep number seconds of the full sweep
        seconds_advice number seconds of the advice
        trials_sweep integer trials of the full sweep
        trials_advice integer trials of the advice
        machine text id of the machine
        versions mapping version of each library used
        not_finite names columns where a NaN or infinity was replaced by null when the row was stored
    """,
}

ADVICE = Table.of("advice", "bench-advise.jsonl", 1, _TABLE)
