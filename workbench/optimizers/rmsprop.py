"""RMSProp with L2 weight decay; rate r, decay l, squares n.

Dense      d <- clip(rescale g + l w);  n <- c n + (1 - c) d^2;  w <- w - r d / sqrt(n + epsilon), every row; c is gamma
Lazy       the same for the touched rows; squares of the other rows do not decay
Equal when every row is touched in every step
Exact      closed form where l = 0: n is multiplied by the product of c over the steps that it missed; else by
           repetition of these, in registers: O(missed) for an element, the same bits as dense
Source     Tieleman and Hinton 2012
"""

from workbench.optimizers.contract import by_rule, register

register(by_rule("rmsprop", rate=0.001, decay=0.0, gamma=0.9, epsilon=1e-8))
