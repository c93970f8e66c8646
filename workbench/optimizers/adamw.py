"""Adam with decoupled weight decay; rate r, decay l, d = clip(rescale g), mean m, variance v, step t from 1.

Dense      m <- b1 m + (1 - b1) d;  v <- b2 v + (1 - b2) d^2;
           w <- w - r sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + epsilon) - r l w, every row
Lazy       the same for the active rows, t counting all steps; means of the other rows do not decay
Equal when every row is active in every step
Exact      by repetition of the steps that a row missed, in registers: O(missed) for an element, the same bits as dense
Source     Loshchilov and Hutter 2019
"""

from workbench.optimizers.contract import by_rule, register

register(by_rule("adamw", learning_rate=0.001, decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8))
