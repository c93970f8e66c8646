"""The columns of what was measured of training on several machines, and of what is predicted from it."""

from workbench.store.table import Table

_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text what was measured, with its sizes: the later of two rows with the same key on one machine counts
        time text when it was measured or predicted, ISO 8601
        status text ok, or why there is nothing
        reason text why the status is not ok; empty when it is
    """,
    "setting": """
        part text bytes, of messages of a step; step, the time of one; or rows, of which there are more than memory
        is_measured flag whether it was measured; what was not is predicted from what was
        machines integer machines of a prediction, processes of this machine of what was measured
        features integer D, rows of the table of weights
        width integer N, numbers of a row of the table
        batch_rows integer R, rows of a batch
        touched number rows of the table that a batch touches
    """,
    "measured": """
        seconds_step number median time of a step
        seconds_computing number of it, or predicted: forward, backward and update
        seconds_network number of it, predicted: messages on their way
        bytes_moved number bytes of the messages of a trainer in a step, sent and received
        bytes_least number bytes of numbers and values of the rows that it pulls and pushes
        ratio number bytes_moved / bytes_least
        bytes_data integer bytes that all rows would take in memory, where they are streamed
        bytes_limit integer half of that, which no process may own
        bytes_peak integer most that one of the processes owned
        rows_trained integer rows that were trained on, by all trainers
        quality number AUC on the rows held out
        seconds_all number of the whole training, starts of processes included
        rows_made integer rows of the table that shards hold in the end
        machine text id of the machine that it was measured on
        versions mapping version of each library used
        not_finite names columns where a NaN or infinity was replaced by null when the row was stored
    """,
}

CLUSTER = Table.of("cluster", "cluster.jsonl", 1, _TABLE)
