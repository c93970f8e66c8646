"""The columns of a training to a held-out quality: a line for every setting tried, and round of the best."""

from workbench.store.table import Table

_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text hash of case, contender, stage, setting and of the code; resuming skips a key that is done
        time text when it ended, ISO 8601
        run text when the run began that it is of, ISO 8601
        status text ok, unsupported, failed, timeout or memory
        reason text why the status is not ok; empty when it is
    """,
    "setting": """
        case text name of the case: a data set and a model
        dataset text data set that is trained on
        path text the file of it, null for what is drawn or built in
        model text model that is trained
        held_out text share of the rows held out, or the file of them
        contender text who trains
        side text ours or rival
        is_dense flag whether it is the dense baseline of ours
        stage text settings (each is tried) or rounds (the best is run again)
        setting mapping the numbers that this training was run with
        is_at_end flag whether the first of them is the least or the largest that was tried
        tried integer settings that were tried of this contender
        round integer number of the round, of rounds alone
        seconds_limit number seconds of training after which a setting is left at the latest
        seconds_rung number seconds of training that this one had at most: settings behind others have less
        threads integer threads allowed
        seed integer draws the rows held out, starting weights, order
    """,
    "measured": """
        rows integer rows trained on
        rows_held_out integer rows held out
        features integer D
        nnz integer stored entries of the rows trained on
        width integer N
        measure text what is measured on the rows held out
        larger_is_better flag whether more of it is better
        curve curve seconds of training, the measure there, number of the point or of iterations; of rounds to target
        value_best number the best of the curve
        left text why it ended: target, limit (of seconds), no gain, lost (no number), done (by itself)
        tolerance number share of the best value within which the target lies, of rounds alone; null: 1 %, schema 2
        target number value to be reached, of rounds alone
        seconds number seconds to the target, of rounds alone; null where it was not reached
        measures mapping measures of quality at the last point, by name
        bytes_dense integer bytes that X would need dense
        bytes_needed integer bytes asked for by what had not enough memory
        bytes_limit integer bytes that it may hold
        busy_others number share of all cores that other programs took meanwhile
        machine text id of the machine
        versions mapping version of each library used
        source text hash of the code that trained
        not_finite names columns where a NaN or infinity was replaced by null when the row was stored
    """,
}

FIT = Table.of("fit", "bench-fit.jsonl", 3, _TABLE)
