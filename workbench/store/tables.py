"""Columns of the tables of results: benchmarks, clusters, comparisons, trainings to a quality, trials, self-trials."""

from workbench import settings
from workbench.store.table import Table

_BENCH_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text hash of the case's settings, of its candidates and of the code; resuming skips a key that is done
        suite text kernels, step or pytorch
        time text when the case ended, ISO 8601
        status text ok, skipped, unsupported, failed, timeout, memory, wrong or stopped
        reason text why the status is not ok; empty when it is
    """,
    "setting": """
        task text what is computed: the name of a kernel, step, bandwidth, overhead or start
        contender text who computes it: one of ours, or a rival
        side text ours or rival
        shape text name of the batch's shape
        rows integer R, rows of the batch
        features integer D
        width integer N, columns of the dense operand
        optimizer text sgd, adagrad, adam, ...; null where nothing is updated
        batches text repeat (index work is kept) or new (every batch pays for all it needs); null outside of steps
        dtype text type of the values
        index_dtype text type of the indices
        threads integer threads allowed
        seed integer seed of the data
        device text where calls run: cpu, or cuda for a CUDA device, named in gpu
        cache text on cuda: warm, or cold, the device's second-level cache being overwritten before each call
        level text bandwidth alone: read, copy, triad or gather, or what a core does, four bytes for each
        bytes_table integer bandwidth alone: size of the arrays
        bytes_row integer bandwidth alone: bytes of the rows that are gathered
    """,
    "measured": """
        nnz integer z, stored entries of the batch
        touched integer U, columns with an entry
        calls integer calls a sample
        threads_used integer threads that most timed calls of ours ran on; null where a library decides
        samples numbers seconds a call, one number a round
        seconds number median of samples, seconds; on cuda by the device's events
        seconds_host number on cuda: seconds a call by the host's clock, launches included
        seconds_low number lower end of the 95 % rank interval of that median, seconds
        seconds_high number upper end of the 95 % rank interval of that median, seconds
        reference text candidate that the ratio is to: the first of ours in the case
        ratio number median over rounds of this candidate's time / the reference's time of the same round
        ratio_low number lower end of the 95 % rank interval of the ratio
        ratio_high number upper end of the 95 % rank interval of the ratio
        seconds_once number what was done once before the timed calls and is in none of them, seconds
        seconds_convert number part of a step: from the batch to what the library takes, seconds
        seconds_plan number part of a step: index work of the batch, seconds
        seconds_forward number part of a step: scores, seconds
        seconds_loss number part of a step: loss and its slope, seconds
        seconds_gradient number part of a step: gradient of the weights, seconds
        seconds_update number part of a step: optimizer, with the gradient where both are one, seconds
        flops integer floating-point operations of a call, by the kernel's formula
        bytes_compulsory integer bytes when every distinct dense row moves once, by the kernel's formula
        bytes_gather integer bytes of dense rows counted once for every stored entry, by the kernel's formula
        bytes_lines integer bytes next to narrow rows in the same cache lines: they move, too
        cold number share of the gathered rows that the last cache cannot keep, 0 to 1
        bytes_per_second number the larger of both / seconds; for bandwidth what was measured
        flops_per_second number flops / seconds
        seconds_bound number no call can be faster on this machine, from rates measured in the same run, seconds
        bound_by text what makes that bound: stream, gather or instructions
        bound_share number seconds_bound / seconds
        why_below text what keeps the kernel from that bound, in words, where it is known
        error number largest relative error of the timed call against the float64 reference
        error_allowed number error above which a candidate gets no time
        bytes_needed integer bytes it would have needed; null unless it did not fit
        busy_others number share of all cores, 0 to 1, that other programs took while the case was measured
        machine text id of the machine
        gpu text name of the CUDA device; null on cpu
        versions mapping version of each library used
        source text hash of the code used
        not_finite names columns where a NaN or infinity was replaced by null when the row was stored
    """,
}

BENCH = Table.of("bench", "bench.jsonl", 1, _BENCH_TABLE)


# The columns of what was measured of training on several machines, and of what is predicted from it.

_CLUSTER_TABLE = {
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

CLUSTER = Table.of("cluster", "bench-cluster.jsonl", 1, _CLUSTER_TABLE)


# The columns of a record of `bench end`: a start of a candidate on a file.

_END_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text case, candidate, start and setting
        time text when it ended, ISO 8601
        status text ok, unsupported, failed or timeout
        reason text why the status is not ok; empty when it is
    """,
    "setting": """
        case text format and size
        format text svmlight or clicks
        megabytes integer size of the file to train on, MB
        candidate text who trains
        side text project or competitor
        setting mapping passes, or strength of the penalty, by name
        start text settings (tried once), warm or cold
    """,
    "measured": """
        seconds number from the start of the first process to the end of the last
        stages mapping seconds by stage
        bytes_peak integer resident memory of the largest process
        bytes_file integer bytes of the file to train on
        loss number mean log loss of the rows held out
        machine text id of the machine
        versions mapping version of each library used
        not_finite names columns where a NaN or infinity was replaced by null when the record was stored
    """,
}

END = Table.of("end", "bench-end.jsonl", 1, _END_TABLE)


# The columns of a record of `bench waits`: a candidate in a case of a part, timed in turn with the other one.

_WAITS_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text part, case and candidate
        time text when the part ended, ISO 8601
        status text ok, wrong, failed, timeout or memory
        reason text why the status is not ok; empty when it is
    """,
    "setting": """
        part text what a user waits for: reading, starting, compiling, predicting, few_rows, searching or defaults
        case text what is read, started, compiled or trained
        candidate text the project, or the competitor by name
        side text project or competitor
        note text what of the candidate's work has to be known; empty if nothing has
        threads integer threads allowed; reading has one core
        seed integer draws the data
    """,
    "measured": """
        samples numbers seconds of rounds 0, 1, and so on
        seconds number seconds, median of the rounds
        seconds_low number lower bound of the interval of the median
        seconds_high number upper bound of the interval of the median
        loss number mean log loss of the rows held out, of defaults
        busy_others number share of all cores that other programs took; null if the part starts processes
        machine text id of the machine
        versions mapping version of each library used
        not_finite names columns where a NaN or infinity was replaced by null when the record was stored
    """,
}

WAITS = Table.of("waits", "bench-waits.jsonl", 1, _WAITS_TABLE)

# The columns of a record of `bench fair` and of `bench epochs`: a candidate in a configuration, timed with all others.

_FAIR_TABLE = {
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

FAIR = Table.of("fair", "bench-fair.jsonl", 1, _FAIR_TABLE)

_EPOCHS_TABLE = {
    "identity": _FAIR_TABLE["identity"],
    "setting": """
        configuration text name of the configuration
        model text logistic of one output, softmax of several
        optimizer text sgd, adagrad, adam or ftrl
        features integer D
        entries integer mean entries of a row, as asked for
        lengths text fixed, or power law, of the entries of a row and of how often columns occur
        batch_rows integer rows a batch
        width integer N
        values text ones or normal
        batches text new in each epoch, or repeat, with what depends on them made before
        rows integer rows of the data
        steps integer batches of an epoch
        seed integer draws rows, labels and order
        candidate text who trains
        side text project or competitor
        note text what of its work differs from that of the others; empty if nothing does
        threads integer threads allowed
    """,
    "measured": """
        nnz integer stored entries of the data
        error number largest error of weights, intercept and losses of an epoch, relative to float64 loops
        error_allowed number largest error allowed
        loss number mean loss of the first epoch
        seconds_ready number seconds until the first epoch had ended and was checked, compiling included
        epochs_call integer epochs of a timed call
        samples numbers seconds an epoch of rounds 0, 1, and so on
        seconds number seconds an epoch, median of the rounds
        seconds_low number lower bound of the interval of the median
        seconds_high number upper bound of the interval of the median
        busy_others number share of all cores that other programs took during the rounds
        machine text id of the machine
        versions mapping version of each library used
        source text hash of the code of all candidates
        not_finite names columns where a NaN or infinity was replaced by null when the record was stored
    """,
}

EPOCHS = Table.of("epochs", "bench-epochs.jsonl", 1, _EPOCHS_TABLE)


# The columns of a training to a held-out quality: a line for every setting tried, and round of the best.

_FIT_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text hash of case, candidate, stage, setting and of the code; resuming skips a key that is done
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
        tried integer settings that were tried of this candidate
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

FIT = Table.of("fit", "bench-fit.jsonl", 3, _FIT_TABLE)


# The columns of a trial: one line of `trials.jsonl` for every planned configuration of a sweep, also when it failed.

_TRIALS_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text hash of the configuration's settings, of the content of its files and of the code; resuming skips a \
key that is done
        content text hash of the content of the files that were read; null if none, and in rows from before it
        run text id of the run that wrote the row
        experiment text name of the experiment
        time text when the trial ended, ISO 8601
        status text ok, skipped, unsupported, failed, timeout, memory, wrong, stopped or disturbed
        reason text why the status is not ok; empty when it is
    """,
    "setting": "".join(
        f"{setting.column or setting.name} {setting.kind} {setting.meaning}\n" for setting in settings.SETTINGS
    )
    + """index_dtype text type of the indices
        round integer how often this configuration was measured before in this run
    """,
    "measured": """
        rows_trained integer rows that were trained on: all but those held out
        density_measured number nnz / size of the data used
        nnz_batch number z, mean stored entries of a batch
        touched number U, mean columns with an entry in a batch
        row_length_cv number standard deviation / mean of the entries a row
        busy_others number share of all cores, 0 to 1, that other programs took while it was measured
        process integer round in which its process was started: rounds of a run and comparison that have the same one \
share their processes; null in older rows
        tries integer how often it was tried until other programs left it alone; the numbers are of the last try
        steps_timed integer steps inside the timed samples
        threads_used integer threads that our kernels ran on in some of the timed steps; BLAS decides for itself
        steps_epoch integer steps an epoch
        kernels mapping kernel that computes each phase of the step, by the phase: forward, loss, gradient, update
        bounds records of phases whose kernel's cost is known: phase, kernel, least seconds that the machine allows, \
what sets them (by: stream, gather, instructions, operations), bytes and bytes_gather that move, flops
        samples numbers seconds a step, one number a sample
        seconds_step number lower quartile of samples, seconds; of schema 1 the median
        seconds_step_low number lower end of the 95 % rank interval of that quartile within the trial, seconds
        seconds_step_high number upper end of the 95 % rank interval of that quartile within the trial, seconds
        seconds_epoch number one pass over the data, seconds
        seconds_prepare number slice, convert and plan of a batch when it is made, mean seconds
        seconds_compile number compiling the kernels, seconds, not in any other time
        seconds_first_step number first step after compiling, caches cold, seconds; so far, if the trial was ended in it
        seconds_slice number cutting the batch out of the data, mean seconds a step
        seconds_convert number converting the batch to its format, mean seconds a step
        seconds_plan number index work of the batch, mean seconds a step
        seconds_wait number waiting for a batch that is prepared ahead, mean seconds a step
        seconds_transfer number copies to the device; of those made ahead what the step waits for; mean seconds a step
        seconds_forward number scores, mean seconds a step
        seconds_loss number loss and its gradient, mean seconds a step
        seconds_gradient number gradient of the weights, mean seconds a step
        seconds_update number optimizer, mean seconds a step
        seconds_graph number scores, loss and update where they are one launch, mean seconds a step
        seconds_batches number scores, loss, gradient and update where an epoch is few calls, mean seconds a step
        seconds_predicted number seconds of a step by the sizes of its batch, not measured; null if no formula is known
        bytes_predicted integer bytes by the formulas of the formats
        bytes_held integer bytes of the arrays held
        bytes_peak integer most that the trial's process owned above its start, bytes; to schema 2 bytes_peak_resident
        bytes_peak_resident integer peak of the trial's process above its start, pages of mapped files among it, bytes
        memory_counted text what bytes_peak counts: anonymous, or resident where the system does not tell them apart
        bytes_needed integer bytes it would have needed; null unless it did not fit
        bytes_limit integer bytes allowed to the trial; of the device where it did not fit there
        bytes_device_predicted integer bytes on the CUDA device by the formulas of the formats; null on cpu
        bytes_device_held integer bytes of the arrays held on the CUDA device; null on cpu
        bytes_device_peak integer most bytes in use at once on the CUDA device, by its memory pool; null on cpu
        bytes_device_limit integer bytes of memory that the CUDA device has; null on cpu
        curve curve training so far as [seconds, loss, step]
        loss_first number loss of the first step
        loss_last number loss at the end of the curve
        quality number quality on held-out rows, named by quality_name
        quality_name text the model's measure of quality, such as accuracy or r2: larger is better
        measures mapping further measures on held-out rows, by name, as the model states them
        quality_curve records after epochs: epoch, training seconds so far, each measure on held-out rows by name
        error number largest relative error of the timed call against the float64 reference
        error_allowed number error above which a trial is wrong
        densified records operations that made a dense array of a sparse one, as {op, shape, bytes}
        machine text id of the machine
        gpu text name of the CUDA device; null on cpu
        versions mapping version of each library used, and of the CUDA driver and runtime where they ran
        blas text BLAS used by the dense side
        mended mapping what would have distorted the trial and was put right for it, with its value; null where nothing
        source text hash of the code used
        seconds_sentinel number fixed work of NumPy next to the samples: what slows it is the machine, seconds
        joules_step number energy a step by the meter, of all that the meter sees, warm-up steps among them, joules
        meter text meter that the energy was read from, or no meter
        throttled integer times that cores were slowed down by heat while it was measured; null where none tells
        bytes_swapped integer bytes that the machine moved to and from its swap while it was measured
        hertz number mean frequency of the cores right after the samples; null where none tells
        seconds_overhead number the trial's own start, data and checks, seconds
        not_finite names columns where a NaN or infinity was replaced by null when the row was stored
    """,
}

TRIALS = Table.of("trials", "trials.jsonl", 3, _TRIALS_TABLE)


# The columns of an outcome of the self-trial: what was wanted where the answer is known, and what came of it.

# The columns of a case of advice: what was recommended, and a full sweep of the same data to judge it by.


_ADVICE_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text hash of the settings of all configurations of the case, and of the code that they use
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
        cells records every configuration of the sweep: format, hold, engine, gradient, update, launch, serial, \
status, seconds of a step (geometric mean of its rounds), bytes at its peak, whether it trains the model that dense does
        recommended mapping format, hold, engine, gradient, update, launch and serial of the recommended configuration
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

ADVICE = Table.of("advice", "bench-advise.jsonl", 1, _ADVICE_TABLE)


_SELF_TABLE = {
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
        condition text what ran next to it: quiet, a load, or the noise of a simulation
        truth number true ratio dense / sparse, or slowed / plain; null where it is not known
        rivals integer sparse candidates that the best was chosen of
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

SELF = Table.of("self", "self.jsonl", 1, _SELF_TABLE)
