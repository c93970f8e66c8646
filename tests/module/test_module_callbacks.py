"""Callbacks of a training: what they are told, and how they end it."""

from tests.support import small_modules as small
from workbench.module import Position, StopTraining


def test_callbacks_see_every_batch_and_epoch():
    feed = small.batches(last="pad")
    seen, module = [], small.module(feed=feed)
    module.fit(
        feed,
        epochs=2,
        metric="mse",
        batch_end=[
            lambda event: seen.append((event.epoch, event.batch, event.batches, event.rows, event.metric.value))
        ],
        epoch_end=lambda event: seen.append((event.epoch, event.metric)),
    )
    assert [entry[:4] for entry in seen if len(entry) == 5] == [
        (epoch, batch, 6, 3 if batch == 5 else 10) for epoch in range(2) for batch in range(6)
    ]
    assert seen[6] == (0, seen[5][4])  # the metric of the epoch is that after its last batch


def test_a_callback_may_end_the_training_and_it_goes_on_from_there():
    feed = small.batches(shuffle=True)

    def stop(event):
        if (event.epoch, event.batch) == (1, 2):
            raise StopTraining

    through, stopped = small.module(feed=feed), small.module(feed=feed)
    whole = through.fit(feed, epochs=3, metric="mse")
    first = stopped.fit(feed, epochs=3, metric="mse", batch_end=stop)
    assert len(first) == 1
    assert stopped.position == Position(1, 3)
    rest = stopped.fit(feed, epochs=3, metric="mse")
    assert [ended.metric for ended in first + rest] == [ended.metric for ended in whole]
    assert small.same(through.weights(), stopped.weights())
    assert stopped.fit(feed, epochs=3) == []  # all are done
    assert [ended.epoch for ended in stopped.fit(feed, epochs=5)] == [3, 4]


def test_nothing_is_printed_unless_it_is_asked_for(capsys):
    feed = small.batches()
    small.module(feed=feed).fit(feed, epochs=2, metric="mse")
    assert capsys.readouterr() == ("", "")
