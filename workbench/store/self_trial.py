"""The columns of an outcome of the self-trial: what was wanted where the answer is known, and what came of it."""

from workbench.store.table import Table

_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text part, what and condition: the later of two outcomes with the same key on one machine counts
        time text when it was found, ISO 8601
        status text ok, or failed where there was nothing to find it from
        reason text why the status is not ok; empty when it is
    """,
    "setting": """
        part text part of the self-trial: same, coverage, power, slow, threshold, threads or demo
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
        met flag whether it is as wanted; null where nothing is wanted
        machine text id of the machine
        versions mapping version of each library used
        not_finite names columns where a NaN or infinity was replaced by null when the row was stored
    """,
}

SELF = Table.of("self", "self.jsonl", 1, _TABLE)
