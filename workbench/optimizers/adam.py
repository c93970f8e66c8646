"""Adam with L2 weight decay; rate r, decay l, mean m, variance v, step t from 1.

Dense      d <- clip(rescale g + l w);  m <- b1 m + (1 - b1) d;  v <- b2 v + (1 - b2) d^2;
           w <- w - r sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + epsilon), every row
Lazy       the same for the active rows, t counting all steps; means of the other rows do not decay
Equal when every row is active in every step
Exact      by repetition of the steps that a row missed, in registers: O(missed) for an element, the same bits as dense
Source     Kingma and Ba 2015; differs: epsilon is added before the bias correction, as in the last form of section 2
"""

from workbench.optimizers.contract import by_rule, register

register(by_rule("adam", learning_rate=0.001, decay=0.0, beta1=0.9, beta2=0.999, epsilon=1e-8))
