"""RMSProp by the variance of the gradient, with momentum; rate r, decay l, squares n, mean q, velocity v.

Dense      d <- clip(rescale g + l w);  n <- c n + (1 - c) d^2;  q <- c q + (1 - c) d;
           v <- b v - r d / sqrt(n - q^2 + epsilon);  w <- clip_w(w + v), every row; b is beta, c is gamma, clip_w keeps
           an element within clip_weights, by default infinite
Lazy       the same for the active rows; states of the other rows do not decay, their weights are not clipped
Equal when every row is active in every step
Exact      by repetition of the steps that a row missed, in registers: O(missed) for an element, the same bits as dense
Source     Graves 2013
"""

import math

from workbench.optimizers.contract import by_rule, register

register(
    by_rule(
        "centered_rmsprop", learning_rate=0.001, decay=0.0, gamma=0.9, beta=0.9, epsilon=1e-8, clip_weights=math.inf
    )
)
