"""Time to a held-out quality: trainings of ours and of other libraries on the same rows, until each is as good.

A case is a data set and a model (`cases.py`). Every contender trains it with the same number of settings, all for a
short time and the best for longer (`rungs.py`), in processes of its own; its predictions on rows held out are judged by
one function (`judge.py`), beside the clock. The target is within 1 % of the best that any contender reached, or where a
side does not come so far, of the best that both come to. The best setting of each is then run again in rounds, each in
turn.

How to add a contender: a file of `contenders`, for which `sklearn_sgd.py` is the one to copy; another training of ours
is a line of `ours.py`. How to add a case: a line of `cases.CASES`.
"""
