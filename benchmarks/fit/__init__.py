"""Time to a held-out quality: trainings of ours and of other libraries on the same rows, until each is as good.

A case is a data set and a model (`cases.py`). Every candidate trains it with the same number of settings, all for a
short time and the best for longer (`suite.py`), in separate processes; its predictions on rows held out are judged by
one function (`cases.Judge`), while the clock stands. The target is within 1 % of the best that any candidate reached,
or if a side does not come so far, of the best that both come to. The best settings of each are then run again in
rounds, each in turn.

How to add a candidate: a function in the file of its library in `candidates`, for which `scikit_learn.py` is the one
to copy; another training of ours is a line of `project.py`. `torch_loop.register_both` registers a competitor with
sparse and with dense rows. How to add a case: a line of `cases.toml`.
"""
