"""The columns of a trial: one line of `trials.jsonl` for every planned configuration of a sweep, also when it
failed."""

from workbench import settings
from workbench.store.table import Table

_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text hash of the cell's settings, of the content of its files and of the code; resuming skips a key \
that is done
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
        round integer how often this cell was measured before in this run
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
        seconds_first_step number first step after compiling, caches cold, seconds
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
        seconds_sentinel number fixed work of NumPy beside the samples: what slows it is the machine, seconds
        joules_step number energy a step by the meter, of all that the meter sees, warm-up steps among them, joules
        meter text what told the energy, or no meter
        throttled integer times that cores were slowed down by heat while it was measured; null where none tells
        bytes_swapped integer bytes that the machine moved to and from its swap while it was measured
        hertz number mean frequency of the cores right after the samples; null where none tells
        seconds_overhead number the trial's own start, data and checks, seconds
        not_finite names columns where a NaN or infinity was replaced by null when the row was stored
    """,
}

TRIALS = Table.of("trials", "trials.jsonl", 3, _TABLE)
