"""AdaGrad with weight decay; rate r, decay l, d = clip(rescale g), history h.

Dense      h <- h + d^2;  w <- w - r (d / sqrt(h + epsilon) + l w), every row
Lazy       the same for the active rows; the others stay as they are
Equal when l = 0: a row with g = 0 changes neither h nor w
Exact      closed form: a row is multiplied by the product of 1 - r l over the steps that it missed
Source     Duchi, Hazan and Singer 2011; the decay is no part of the history
"""

from workbench.optimizers.contract import by_rule, register

register(by_rule("adagrad", learning_rate=0.1, decay=0.0, epsilon=1e-16))
