"""Nesterov's accelerated gradient with L2 weight decay; rate r, decay l, d = clip(rescale g), velocity v.

Dense      s <- r (d + l w);  v <- b v - s;  w <- w + b v - s, every row
Lazy       the same for the active rows; velocities of the other rows do not decay
Equal when every row is active in every step
Exact      closed form: (w, v) is multiplied by the product of the two-by-two matrices of the steps that it missed
Source     Sutskever et al. 2013
"""

from workbench.optimizers.contract import by_rule, register

register(by_rule("nesterov", learning_rate=0.1, decay=0.0, beta=0.9))
