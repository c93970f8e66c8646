"""The columns of what was measured of training on several machines, and of what is predicted from it."""

from workbench.store.table import Table

_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text name of what was measured with its sizes, and hash of the code: the later row with a key counts
        time text when it was measured or predicted, ISO 8601
        status text ok, or why there is nothing; memory, where a process was refused what it asked for
        reason text why the status is not ok; empty when it is
    """,
    "setting": """
        part text bytes, of messages of a step; step, the time of one; or rows, of which there are more than memory
        what text name of what was measured, with its sizes: the later of two rows of one machine counts
        is_measured flag whether it was measured; what was not is predicted from what was
        machines integer machines of a prediction, or processes of this machine
        cores integer cores that the processes of one machine share; null for machines
        features integer D, rows of the table of weights
        width integer N, numbers of a row of the table
        batch_rows integer R, rows of a batch
        touched number rows of the table that a batch touches
        is_held flag whether a process holds all rows, which is to be refused, rather than stream its own
    """,
    "measured": """
        seconds_step number median time of a step
        seconds_computing number of it, predicted: forward, backward and update
        seconds_waiting number of it, predicted: for the slowest of all
        seconds_network number of it, predicted: messages packed, on their way, and answered
        bytes_moved number bytes of the messages of a trainer in a step, sent and received
        bytes_least number bytes of numbers and values of the rows that it pulls and pushes
        ratio number bytes_moved / bytes_least
        bytes_data integer bytes of the files of all rows, where they are streamed
        bytes_limit integer half of that; the system refuses a process more of its own (RLIMIT_DATA)
        bytes_resident integer high-water mark of a process: its own memory and pages of libraries (VmHWM); the larger
        bytes_asked integer memory of its own that it had asked for in the end, touched or not (VmData); the larger
        rows_trained integer rows that were trained on, by all trainers
        quality number AUC on the rows held out
        seconds_made number making the rows
        seconds_all number of the whole training, starts of processes included
        rows_made integer rows of the table that shards hold in the end
        machine text id of the machine that it was measured on
        versions mapping version of each library used
        not_finite names columns where a NaN or infinity was replaced by null when the row was stored
    """,
}

CLUSTER = Table.of("cluster", "bench-cluster.jsonl", 1, _TABLE)
