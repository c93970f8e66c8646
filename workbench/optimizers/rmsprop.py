"""RMSProp with L2 weight decay; rate r, decay l, squares n.

Dense      d <- clip(rescale g + l w);  n <- c n + (1 - c) d^2;  w <- clip_w(w - r d / sqrt(n + epsilon)), every
           row; c is gamma, clip_w keeps an element within clip_weights, by default infinite
Lazy       the same for the active rows; squares of the other rows do not decay, their weights are not clipped
Equal when every row is active in every step
Exact      closed form where l = 0 and clip_weights infinite: n is multiplied by the product of c over the steps that it
           missed; else by repetition of these, in registers: O(missed) for an element, the same bits as dense
Source     Tieleman and Hinton 2012
"""

import math

from workbench.optimizers.contract import by_rule, register

register(by_rule("rmsprop", learning_rate=0.001, decay=0.0, gamma=0.9, epsilon=1e-8, clip_weights=math.inf))
