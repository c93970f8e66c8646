"""The columns of an outcome of the self-trial: what was wanted where the answer is known, and what came of it."""

from workbench.store.table import Table

# The columns of a case of advice: what was recommended, and a full sweep of the same data to judge it by.


_TABLE_of_advice = {
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
        verdict text sparse, dense, level or inconclusive, as the advice has it
        seconds_sweep number seconds of the full sweep
        seconds_advice number seconds of the advice
        trials_sweep integer trials of the full sweep
        trials_advice integer trials of the advice
        machine text id of the machine
        versions mapping version of each library used
        not_finite names columns where a NaN or infinity was replaced by null when the row was stored
    """,
}

ADVICE = Table.of("advice", "bench-advise.jsonl", 1, _TABLE_of_advice)


_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text part, what and condition: the later of two outcomes with the same key on one machine counts
        time text when it was found, ISO 8601
        status text ok, or failed where there was nothing to find it from
        reason text why the status is not ok; empty when it is
    """,
    "setting": """
        part text part of the self-trial: same, coverage, power, slow, threshold, threads, busy, turns, panel or demo
        what text what was looked at, in a few words
        condition text beside what: quiet, a load, or the noise of a simulation
        truth number true ratio dense / sparse, or slowed / plain; null where it is not known
        rivals integer sparse contenders that the best was chosen of
        wanted_low number least share, or ratio, that is wanted; null where there is no lower limit
        wanted_high number most that is wanted; null where there is no upper limit
    """,
    "measured": """
        hits integer how many of them did what is counted
        count integer comparisons, or simulated sweeps
        share number hits / count, 0 to 1; null where a ratio was measured
        ratio number measured ratio; null where a share was counted
        low number lower end of the 95 % interval of the share (Wilson), or of the interval of the ratio
        high number upper end of it
        rounds number mean of the rounds that counted
        deviation number standard deviation of the logarithm of a round's ratio; null where it was not asked for
        met flag whether it is as wanted; null where nothing is wanted
        machine text id of the machine
        versions mapping version of each library used
        not_finite names columns where a NaN or infinity was replaced by null when the row was stored
    """,
}

SELF = Table.of("self", "self.jsonl", 1, _TABLE)
