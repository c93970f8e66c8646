"""The step of every update rule in NumPy, on whole arrays, from the formulas in the papers: independent of the kernels.

Each takes the weights, the states, the gradient and the rule's numbers by name, and gives the new weights and states.
"""

import numpy as np


def clip(x, limit):
    return np.minimum(np.maximum(x, -limit), limit)


def sgd(w, g, *, learning_rate, decay, rescale, clip_at):
    return [(1 - learning_rate * decay) * w - learning_rate * clip(rescale * g, clip_at)]


def momentum(w, v, g, *, learning_rate, decay, beta, rescale, clip_at):
    v = beta * v - learning_rate * decay * w - learning_rate * clip(rescale * g, clip_at)
    return [w + v, v]


def nesterov(w, v, g, *, learning_rate, decay, beta, rescale, clip_at):
    d = clip(rescale * g, clip_at) + decay * w
    v = beta * v - learning_rate * d
    return [w + beta * v - learning_rate * d, v]


def adagrad(w, h, g, *, learning_rate, decay, epsilon, rescale, clip_at):
    d = clip(rescale * g, clip_at)
    h = h + d**2
    return [w - learning_rate * d / np.sqrt(h + epsilon) - learning_rate * decay * w, h]


def group_adagrad(w, h, g, *, learning_rate, decay, epsilon, rescale, clip_at):
    d = clip(rescale * g, clip_at)
    h = h + (d**2).mean(1)
    return [w - learning_rate * d / np.sqrt(h + epsilon)[:, None] - learning_rate * decay * w, h]


def _moments(m, v, d, beta1, beta2, step):
    m, v = beta1 * m + (1 - beta1) * d, beta2 * v + (1 - beta2) * d**2
    return m, v, np.sqrt(1 - beta2**step) / (1 - beta1**step)


def adam(w, m, v, g, *, learning_rate, decay, beta1, beta2, epsilon, rescale, clip_at, step):
    m, v, corrected = _moments(m, v, clip(rescale * g + decay * w, clip_at), beta1, beta2, step)
    return [w - learning_rate * corrected * m / (np.sqrt(v) + epsilon), m, v]


def adamw(w, m, v, g, *, learning_rate, decay, beta1, beta2, epsilon, rescale, clip_at, step):
    m, v, corrected = _moments(m, v, clip(rescale * g, clip_at), beta1, beta2, step)
    return [(1 - learning_rate * decay) * w - learning_rate * corrected * m / (np.sqrt(v) + epsilon), m, v]


def ftrl(w, z, n, g, *, learning_rate, decay, beta, l1, rescale, clip_at):
    d = clip(rescale * g, clip_at)
    sigma = (np.sqrt(n + d**2) - np.sqrt(n)) / learning_rate
    z, n = z + d - sigma * w, n + d**2
    shrunk = np.sign(z) * np.maximum(np.abs(z) - l1, 0)
    return [-shrunk / ((beta + np.sqrt(n)) / learning_rate + decay), z, n]


def rmsprop(w, n, g, *, learning_rate, decay, gamma, epsilon, clip_weights, rescale, clip_at):
    d = clip(rescale * g + decay * w, clip_at)
    n = gamma * n + (1 - gamma) * d**2
    return [clip(w - learning_rate * d / np.sqrt(n + epsilon), clip_weights), n]


def centered_rmsprop(w, n, q, v, g, *, learning_rate, decay, gamma, beta, epsilon, clip_weights, rescale, clip_at):
    d = clip(rescale * g + decay * w, clip_at)
    n, q = gamma * n + (1 - gamma) * d**2, gamma * q + (1 - gamma) * d
    v = beta * v - learning_rate * d / np.sqrt(n - q**2 + epsilon)
    return [clip(w + v, clip_weights), n, q, v]


def signum(w, m, g, *, learning_rate, decay, decoupled, beta, rescale, clip_at):
    m = beta * m - (1 - beta) * (clip(rescale * g, clip_at) + decay * w)
    return [(1 - learning_rate * decoupled) * w + learning_rate * np.sign(m), m]


def step(rule: str, w, states, g, numbers: dict) -> list:
    """Weights and states after a step of the rule of that name; `numbers` by their names."""
    named = {"clip_at" if name == "clip" else name: value for name, value in numbers.items()}
    return globals()[rule](w, *states, g, **named)
