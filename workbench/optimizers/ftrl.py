"""FTRL-Proximal with L1 and L2 penalties; rate r, decay l, d = clip(rescale g), linear z, squares n.

Dense      n' <- n + d^2;  z <- z + d - (sqrt(n') - sqrt(n)) / r w;  n <- n';
           w <- 0 if |z| <= l1, else (sign(z) l1 - z) / ((beta + sqrt(n)) / r + l), every row
Lazy       the same for the active rows; the others stay as they are
Equal when weights start at zero and the rate stays: a row with g = 0 is what its z and n say already
Exact      closed form: the last of the steps that a row missed makes of w what z and n say, with the same bits as dense
Source     McMahan et al. 2013; l is their lambda 2
"""

from workbench.optimizers.contract import by_rule, register

register(by_rule("ftrl", learning_rate=0.1, decay=0.0, beta=1.0, l1=0.0))
