"""Loss and its gradient with respect to the scores, in one pass.

A loss that gives its `block` (`kernels.loss_blocks`) has whole epochs in one call, too (`kernels.epochs`).
"""
