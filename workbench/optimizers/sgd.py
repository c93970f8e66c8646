"""Stochastic gradient descent with L2 weight decay; rate r, decay l, d = clip(rescale g).

Dense      w <- w - r (d + l w), every row
Lazy       the same for the active rows; the others stay as they are
Equal when l = 0
Exact      closed form: a row is multiplied by the product of 1 - r l over the steps that it missed
Source     Robbins and Monro 1951
"""

from workbench.optimizers.contract import by_rule, register

register(by_rule("sgd", learning_rate=0.1, decay=0.0))
