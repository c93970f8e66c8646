"""Points of trainings, of ours and of a competitor, whose qualities and seconds are known."""

from workbench.analysis import curves


def point(who="ours", repeat=0, epoch=1, seconds=1.0, value=0.5, measure="AUC", side="ours") -> dict:
    return dict(zip(curves.COLUMNS, (who, side, repeat, epoch, seconds, measure, value), strict=True))


def two(gain=0.1, slower=4.0, repeats=4, measure="AUC"):
    """Ours, and a competitor that ends `gain` worse and takes `slower` times as long, in splits unlike each other."""
    points = []
    for repeat in range(repeats):
        for epoch in (1, 2):
            value = 0.7 + 0.05 * epoch + 0.03 * repeat
            points.append(point("ours", repeat, epoch, epoch, value, measure))
            other = value - gain * (1 + 0.01 * repeat)
            points.append(point("theirs", repeat, epoch, slower * epoch, other, measure, "competitor"))
    return curves.frame(points)
