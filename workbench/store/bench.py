"""The columns of a benchmark row: one line of `bench.jsonl` for every candidate of every case, also when it failed."""

from workbench.store.table import Table

_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text hash of the case's settings, of its contenders and of the code; resuming skips a key that is done
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
        reference text contender that the ratio is to: the first of ours in the case
        ratio number median over rounds of this contender's time / the reference's time of the same round
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
        bytes_lines integer bytes beside narrow rows in the lines that they lie in: they move, too
        cold number share of the gathered rows that the last cache cannot keep, 0 to 1
        bytes_per_second number the larger of both / seconds; for bandwidth what was measured
        flops_per_second number flops / seconds
        seconds_bound number no call can be faster on this machine, from rates measured in the same run, seconds
        bound_by text what makes that bound: stream, gather or instructions
        bound_share number seconds_bound / seconds
        why_below text what keeps the kernel from that bound, in words, where it is known
        error number largest relative error of the timed call against the float64 reference
        error_allowed number error above which a contender gets no time
        bytes_needed integer bytes it would have needed; null unless it did not fit
        busy_others number share of all cores, 0 to 1, that other programs took while the case was measured
        machine text id of the machine
        gpu text name of the CUDA device; null on cpu
        versions mapping version of each library used
        source text hash of the code used
        not_finite names columns where a NaN or infinity was replaced by null when the row was stored
    """,
}

BENCH = Table.of("bench", "bench.jsonl", 1, _TABLE)
