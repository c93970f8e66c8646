"""Which way of training is the fastest inside a framework: its own dense and sparse ways, and ours through the bridge.

`answer_for("pytorch", dataset)` trains the linear model on the data in each way of that framework, compares weights
and losses of each with loops in float64, times them in turned rounds, and says which to use, by how much, and the lines
to paste. `workbench advise DATA --for pytorch` prints it.

How to add a way: a call of `register_way` in the file of its framework in the folder `ways`. A new framework is a new
file there.
"""

from workbench.bench.frameworks.answer import FrameworkAnswer, answer_for
from workbench.bench.frameworks.contract import FRAMEWORKS, Way

__all__ = ["FRAMEWORKS", "FrameworkAnswer", "Way", "answer_for"]
