"""Gradient descent with momentum and L2 weight decay; rate r, decay l, d = clip(rescale g), velocity v.

Dense      v <- b v - r (d + l w);  w <- w + v, every row
Lazy       the same for the active rows; velocities of the other rows do not decay
Equal when every row is active in every step
Exact      closed form: (w, v) is multiplied by the product of the two-by-two matrices of the steps that it missed
Source     Polyak 1964
"""

from workbench.optimizers.contract import by_rule, register

register(by_rule("momentum", learning_rate=0.1, decay=0.0, beta=0.9))
