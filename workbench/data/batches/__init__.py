"""Mini-batches: rows of a data set, epoch after epoch.

`feed` says what a training loop may ask of any of them: those `in_memory` here, those of `shards`, those of `text`.
`completed` adds to batches what is sampled for each. `cut` takes rows out of each format, `block_order` is the random
order of rows that are read from disk, and `loader` prepares one batch while another is trained on.
"""
