"""Signum: steps of one size by the sign of the momentum; rate r, decay l, decoupled decay k, d = clip(rescale g).

Dense      m <- b m - (1 - b) (d + l w);  w <- (1 - r k) w + r sign(m), every row
Lazy       the same for the active rows; the others stay as they are
Equal when every row is active in every step
Exact      by repetition of the steps that a row missed, in registers: O(missed) for an element, the same bits as dense
Source     Bernstein et al. 2018; with b = 0 their signSGD
"""

from workbench.optimizers.contract import by_rule, register

register(by_rule("signum", learning_rate=0.01, decay=0.0, decoupled=0.0, beta=0.9))
