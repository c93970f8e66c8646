"""The optimizers that are registered: formulas of each, and the defaults of its options."""

import math

from workbench.optimizers.contract import declare, register

register(
    declare(
        "sgd",
        """\
Stochastic gradient descent with L2 weight decay; rate r, decay l, d = clip(rescale g).

Dense      w <- w - r (d + l w), every row
Lazy       the same for the active rows; the others stay as they are
Equal when l = 0
Exact      closed form: a row is multiplied by the product of 1 - r l over the steps that it missed
Source     Robbins and Monro 1951
""",
        learning_rate=0.1,
        decay=0.0,
    )
)

register(
    declare(
        "momentum",
        """\
Gradient descent with momentum and L2 weight decay; rate r, decay l, d = clip(rescale g), velocity v.

Dense      v <- b v - r (d + l w);  w <- w + v, every row
Lazy       the same for the active rows; velocities of the other rows do not decay
Equal when every row is active in every step
Exact      closed form: (w, v) is multiplied by the product of the two-by-two matrices of the steps that it missed
Source     Polyak 1964
""",
        learning_rate=0.1,
        decay=0.0,
        beta=0.9,
    )
)

register(
    declare(
        "nesterov",
        """\
Nesterov's accelerated gradient with L2 weight decay; rate r, decay l, d = clip(rescale g), velocity v.

Dense      s <- r (d + l w);  v <- b v - s;  w <- w + b v - s, every row
Lazy       the same for the active rows; velocities of the other rows do not decay
Equal when every row is active in every step
Exact      closed form: (w, v) is multiplied by the product of the two-by-two matrices of the steps that it missed
Source     Sutskever et al. 2013
""",
        learning_rate=0.1,
        decay=0.0,
        beta=0.9,
    )
)

register(
    declare(
        "signum",
        """\
Signum: steps of one size by the sign of the momentum; rate r, decay l, decoupled decay k, d = clip(rescale g).

Dense      m <- b m - (1 - b) (d + l w);  w <- (1 - r k) w + r sign(m), every row
Lazy       the same for the active rows; the others stay as they are
Equal when every row is active in every step
Exact      by repetition of the steps that a row missed, in registers: O(missed) for an element, the same bits as dense
Source     Bernstein et al. 2018; with b = 0 their signSGD
""",
        learning_rate=0.01,
        decay=0.0,
        decoupled=0.0,
        beta=0.9,
    )
)

register(
    declare(
        "adagrad",
        """\
AdaGrad with weight decay; rate r, decay l, d = clip(rescale g), history h.

Dense      h <- h + d^2;  w <- w - r (d / sqrt(h + epsilon) + l w), every row
Lazy       the same for the active rows; the others stay as they are
Equal when l = 0: a row with g = 0 changes neither h nor w
Exact      closed form: a row is multiplied by the product of 1 - r l over the steps that it missed
Source     Duchi, Hazan and Singer 2011; the decay is no part of the history
""",
        learning_rate=0.1,
        decay=0.0,
        epsilon=1e-16,
    )
)

register(
    declare(
        "group_adagrad",
        """\
AdaGrad with one history a row, known as group AdaGrad and as row-wise AdaGrad; rate r, decay l, d = clip(rescale g),
history h [D].

Dense      h <- h + mean over the row of d^2;  w <- w - r (d / sqrt(h + epsilon) + l w), every row
Lazy       the same for the active rows; the others stay as they are
Equal when l = 0: a row with g = 0 changes neither h nor w
Exact      closed form: a row is multiplied by the product of 1 - r l over the steps that it missed
Source     Mudigere et al. 2022: a state of D numbers instead of D N
""",
        learning_rate=0.1,
        decay=0.0,
        epsilon=1e-5,
    )
)

register(
    declare(
        "rmsprop",
        """\
RMSProp with L2 weight decay; rate r, decay l, squares n.

Dense      d <- clip(rescale g + l w);  n <- c n + (1 - c) d^2;  w <- clip_w(w - r d / sqrt(n + epsilon)), every
           row; c is gamma, clip_w keeps an element within clip_weights, by default infinite
Lazy       the same for the active rows; squares of the other rows do not decay, their weights are not clipped
Equal when every row is active in every step
Exact      closed form where l = 0 and clip_weights infinite: n is multiplied by the product of c over the steps that it
           missed; else by repetition of these, in registers: O(missed) for an element, the same bits as dense
Source     Tieleman and Hinton 2012
""",
        learning_rate=0.001,
        decay=0.0,
        gamma=0.9,
        epsilon=1e-8,
        clip_weights=math.inf,
    )
)

register(
    declare(
        "centered_rmsprop",
        """\
RMSProp by the variance of the gradient, with momentum; rate r, decay l, squares n, mean q, velocity v.

Dense      d <- clip(rescale g + l w);  n <- c n + (1 - c) d^2;  q <- c q + (1 - c) d;
           v <- b v - r d / sqrt(n - q^2 + epsilon);  w <- clip_w(w + v), every row; b is beta, c is gamma, clip_w keeps
           an element within clip_weights, by default infinite
Lazy       the same for the active rows; states of the other rows do not decay, their weights are not clipped
Equal when every row is active in every step
Exact      by repetition of the steps that a row missed, in registers: O(missed) for an element, the same bits as dense
Source     Graves 2013
""",
        learning_rate=0.001,
        decay=0.0,
        gamma=0.9,
        beta=0.9,
        epsilon=1e-8,
        clip_weights=math.inf,
    )
)

register(
    declare(
        "adam",
        """\
Adam with L2 weight decay; rate r, decay l, mean m, variance v, step t from 1.

Dense      d <- clip(rescale g + l w);  m <- b1 m + (1 - b1) d;  v <- b2 v + (1 - b2) d^2;
           w <- w - r sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + epsilon), every row
Lazy       the same for the active rows, t counting all steps; means of the other rows do not decay
Equal when every row is active in every step
Exact      by repetition of the steps that a row missed, in registers: O(missed) for an element, the same bits as dense
Source     Kingma and Ba 2015; differs: epsilon is added before the bias correction, as in the last form of section 2
""",
        learning_rate=0.001,
        decay=0.0,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
    )
)

register(
    declare(
        "adamw",
        """\
Adam with decoupled weight decay; rate r, decay l, d = clip(rescale g), mean m, variance v, step t from 1.

Dense      m <- b1 m + (1 - b1) d;  v <- b2 v + (1 - b2) d^2;
           w <- w - r sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + epsilon) - r l w, every row
Lazy       the same for the active rows, t counting all steps; means of the other rows do not decay
Equal when every row is active in every step
Exact      by repetition of the steps that a row missed, in registers: O(missed) for an element, the same bits as dense
Source     Loshchilov and Hutter 2019
""",
        learning_rate=0.001,
        decay=0.01,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
    )
)

register(
    declare(
        "ftrl",
        """\
FTRL-Proximal with L1 and L2 penalties; rate r, decay l, d = clip(rescale g), linear z, squares n.

Dense      n' <- n + d^2;  z <- z + d - (sqrt(n') - sqrt(n)) / r w;  n <- n';
           w <- 0 if |z| <= l1, else (sign(z) l1 - z) / ((beta + sqrt(n)) / r + l), every row
Lazy       the same for the active rows; the others stay as they are
Equal when weights start at zero and the rate stays: a row with g = 0 is what its z and n say already
Exact      closed form: the last of the steps that a row missed makes of w what z and n say, with the same bits as dense
Source     McMahan et al. 2013; l is their lambda 2
""",
        learning_rate=0.1,
        decay=0.0,
        beta=1.0,
        l1=0.0,
    )
)
