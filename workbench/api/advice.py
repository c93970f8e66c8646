"""Advice from Python: sparse or dense, how, how sure that is, and what trains so."""

import html
import inspect
import shlex
import time
from pathlib import Path
from typing import Any

from workbench.advising import Answer
from workbench.advising import advise as measure
from workbench.advising.advising import SECONDS
from workbench.advising.source import load_call
from workbench.api import results, sweeping, training
from workbench.api.inputs import say
from workbench.api.loading import Loaded, receive, refuse_misspelled
from workbench.api.results import CHARTS, Result
from workbench.option_text import worded
from workbench.recommend.comparing import RecommenderAdvice
from workbench.recommend.comparing import compare as compare_recommenders
from workbench.recommend.recommender import MODELS as RECOMMENDERS
from workbench.sweeps.spec import SpecError, validate_spec

SECONDS_FRAMEWORK = 120.0
"""Usual budget of advice for a framework, whose libraries and compilers take their time."""
LAZY = {"lazy": "on", "exact": "exact", "standard": "off"}
"""The parameter `lazy` of an estimator by the update of a configuration."""

USUAL_BATCHES = {"format": "csr", "storage": "same"}
"""Defaults of an estimator's parameters for the batches, which are not named."""


class Advice:
    """The answer to "sparse or dense, and how": a card in a notebook, text in a terminal.

    Attributes
    ----------
    verdict : str
        In time: sparse, dense, level (within 10 %) or inconclusive; none if nothing ran.
    best : dict
        Settings of the recommended configuration; empty if nothing ran.
    command : str or None
        The command that trains so; None for data that is in no file.
    result : Result
        All that was measured.

    Examples
    --------
    >>> import workbench as wb
    >>> advice = wb.advise("uniform", budget=20)  # doctest: +SKIP
    >>> advice.best["format"]  # doctest: +SKIP
    'csr'
    """

    def __init__(self, answer: Answer, loaded: Loaded) -> None:
        """Store the measured answer and the data, and read the result of its run folder."""
        self._answer, self._loaded = answer, loaded
        self.result = Result(answer.folder)
        recommendation = answer.recommendation
        self.verdict, self.best = recommendation.verdict, dict(recommendation.settings or {})
        self.command = answer.command or None if loaded.settings else None

    @property
    def table(self) -> Any:
        """All candidates as a pandas DataFrame, one line each, as `Result.frame`."""
        return self.result.frame

    def plot(self, chart: str = "time", figure: Any = None) -> Any:
        """Draw a chart of the candidates and return its Axes; as `Result.plot`."""
        return self.result.plot(chart, figure)

    def report(self, path: str | Path | None = None, quote_formulas: bool = False) -> Path:
        """Write a report and return its path; as `Result.report`.

        Where no trial ended in time, it says what was predicted.
        """
        from workbench.reports import export

        self.result.folder.mkdir(parents=True, exist_ok=True)
        return export.write_report(self.result.folder, path, predicted=self._answer.text, quote_formulas=quote_formulas)

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimator that trains as recommended, with format and storage of the rows."""
        settings = self._answer.settings
        kept = {"optimizer": settings.get("optimizer"), "batch_rows": self.best.get("batch_rows")}
        if self.best:
            kept |= {name: self.best.get(name, usual) for name, usual in USUAL_BATCHES.items()}
            kept["lazy"] = None if kept["format"] == "dense" else LAZY[self.best["update"]]
            kept |= {name: None for name, usual in USUAL_BATCHES.items() if kept[name] == usual}
        return {name: value for name, value in kept.items() if value is not None}

    def fit(self, **parameters: Any) -> Any:
        """Train an estimator as recommended, on the data that was asked about.

        Parameters
        ----------
        **parameters
            Further parameters of the estimator, such as `random_state`; they count before the recommended ones.

        Returns
        -------
        SparseClassifier or SparseRegressor
            Fitted, with `predict`.

        Raises
        ------
        ValueError
            If the data has no labels, or the model is none that an estimator trains.
        """
        if not self._loaded.is_labelled:
            raise SpecError("The data has no labels to fit.\nType wb.advise(X, y).fit().")
        return training.fit_estimator(self._loaded, self._answer.settings["model"], {**self.parameters, **parameters})

    @property
    def code(self) -> str:
        """Lines of Python that train as recommended: by an estimator, or by the command if none trains the model."""
        if not training.has_estimator(self._answer.settings["model"]) and self._answer.command:
            words = ", ".join(map(repr, ["-m", *shlex.split(self._answer.command)]))
            return f"import subprocess\nimport sys\n\nsubprocess.run([sys.executable, {words}], check=True)"
        columns = self._loaded.columns
        label = columns.label if columns is not None else None
        data = "X, y" if label is None else f"frame, label={label.name!r}"
        data = load_call(self._loaded.settings) if self._loaded.settings else data
        given = {"model": self._answer.settings["model"], **self.parameters}
        words = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return f"import workbench as wb\n\nmodel = wb.train({data}, {words})"

    @property
    def seconds(self) -> dict[str, float | None]:
        """Training time (s) of 20 epochs, or of the `epochs` asked about, by side: "sparse" and "dense"."""
        return {side: known.value if known else None for side, known in self._answer.recommendation.seconds.items()}

    def __repr__(self) -> str:
        """Return the headline as one line."""
        return f"Advice: {self._answer.text.headline}"

    def __str__(self) -> str:
        """Return the whole advice as plain text, with how to train and the time spent."""
        trained = f"Train it with: {self.command}" if self.command else f"Train it with:\n{self.code}"
        return "\n".join([str(self._answer.text), trained, self._answer.spent])

    def _repr_html_(self) -> str:
        """Return the advice as HTML for a notebook, with a chart of time."""
        parts = [self._answer.text.html]
        parts.append(f"<p>Train it with</p><pre><code>{html.escape(self.code)}</code></pre>")
        if self.command:
            parts.append(f"<p>or <code>{html.escape(self.command)}</code></p>")
        body = "".join([*parts, f"<p>{html.escape(self._answer.spent)}</p>"])
        return results.page(body, self.result.trials, CHARTS["time"])


class FrameworkAdvice:
    """Which way to train inside a framework: a card in a notebook, text in a terminal.

    Attributes
    ----------
    side : str
        dense or sparse: how the recommended way holds the data.
    best : str
        Name of the recommended way.
    ratio : tuple of float or None
        Time of the fastest dense way divided by that of the fastest sparse one: value, low and high of the 95 %
        interval. None if a side did not run.
    code : str
        Lines to paste; of data in memory they expect a SciPy sparse matrix `x` and labels `y`.
    """

    def __init__(self, answer: Any) -> None:
        """Store the measured answer; take side, name and lines of its best way."""
        self._answer = answer
        self.side, self.best, self.code = answer.best.kind, answer.best.name, answer.lines
        self.ratio = None if answer.ratio is None else (answer.ratio.value, answer.ratio.low, answer.ratio.high)

    @property
    def table(self) -> Any:
        """All ways as a pandas DataFrame: seconds a batch, bytes of the data, and why a way was not timed."""
        import pandas as pd

        columns = ("name", "kind", "seconds", "bytes_data", "reason")
        return pd.DataFrame([[getattr(way, name) for name in columns] for way in self._answer.ways], columns=[*columns])

    @property
    def breakevens(self) -> Any:
        """From which density on dense was faster in operations of the framework, as a pandas DataFrame.

        They were measured elsewhere, not on your rows: by `threads` of the processor `cpu`, on random float32 X
        [rows, features]. `density` is the break-even, `low` and `high` the bounds of its interval (fractions, NaN if
        there is none), `text` says it in words. No rows if nothing of the framework was measured.
        """
        import pandas as pd

        found = self._answer.measured_elsewhere
        columns = ("library", "version", "operation", "rows", "features", "density", "low", "high", "text")
        rows = [[getattr(one, name) for name in columns] for one in found.operations]
        return pd.DataFrame(rows, columns=[*columns]).assign(cpu=found.cpu, threads=found.threads)

    def __repr__(self) -> str:
        """Return the headline as one line."""
        return f"FrameworkAdvice: {self._answer.headline}"

    def __str__(self) -> str:
        """Return the whole advice as plain text."""
        return str(self._answer)

    def _repr_html_(self) -> str:
        """Return the advice as HTML for a notebook."""
        head = f'<p class="verdict"><strong>{html.escape(self._answer.headline)}</strong></p>'
        rows = "".join(f"<li>{html.escape(line.strip())}</li>" for line in self._answer.lines_of_ways)
        heading, *lines = self._answer.measured_elsewhere.lines(self._answer.density) or [""]
        elsewhere = "".join(f"<li>{html.escape(line.strip())}</li>" for line in lines)
        below = f"<p>{html.escape(heading)}</p><ul>{elsewhere}</ul>" if lines else ""
        return results.page(f"{head}<ul>{rows}</ul><pre><code>{html.escape(self.code)}</code></pre>{below}")


class ModelAdvice(FrameworkAdvice):
    """Which first layer to train a model of PyTorch or Keras with: a card in a notebook, text in a terminal.

    Attributes
    ----------
    side : str
        dense or sparse: the first layer to use.
    best : str
        Name of the recommended way.
    ratio : tuple of float or None
        Time of a whole training step with the fastest dense layer divided by that with the fastest sparse one: value,
        low and high of the 95 % interval. None if no sparse one ran.
    share : float
        Part of the dense step, 0 to 1, that the first layer takes: no first layer gains more than that.
    layer_ratio : float or None
        The same ratio for the layer alone, about: the step without a first layer is subtracted from both.
    code : str
        The lines that change.
    """

    def __init__(self, answer: Any) -> None:
        """Store the measured answer; take share and ratio of the layer from it."""
        super().__init__(answer)
        self.share, self.layer_ratio = answer.share, answer.layer_ratio

    @property
    def table(self) -> Any:
        """All ways as a pandas DataFrame: seconds a step, of the layer alone, bytes of rows and gradient, reason."""
        import pandas as pd

        columns = ("name", "kind", "seconds", "seconds_layer", "bytes_data", "bytes_gradient", "reason")
        return pd.DataFrame([[getattr(way, name) for name in columns] for way in self._answer.ways], columns=[*columns])


def advise(
    X: Any,
    y: Any = None,
    *,
    budget: float | None = None,
    model: Any = None,
    label: str | None = None,
    optimizer: str | None = None,
    batch_rows: int | None = None,
    device: str | None = None,
    lazy: bool = False,
    run: str | Path | None = None,
    framework: str | None = None,
    epochs: int = 20,
    loss: Any = None,
    **reading: Any,
) -> Advice | FrameworkAdvice | RecommenderAdvice:
    """Say what to train the data with: sparse or dense, how, and how much faster; measured here.

    Ctrl-C, or interrupting the cell, ends the measuring; what was measured answers.

    Parameters
    ----------
    X : anything that `load` takes
        A matrix `[rows, features]`, a frame, the path of a file, or the name of a data set.
    y : array of shape [rows], optional
        Labels of a matrix in memory. Without labels random ones are used to time training.
    budget : float, optional
        Seconds for all of it, 5 or more; by default 60, for a framework 120.
    model : str, torch.nn.Module or keras.Model, optional
        Model that is trained; by default what suits the labels. "als" or "ease" compares these two on who took what:
        recall, seconds and memory; further arguments are those of `Recommender`. Of a model of PyTorch or Keras the
        first layer, which takes the features, is tried dense and sparse; whole training steps of that model are timed.
    label : str, optional
        Name of the column of labels, of a frame or a table in a file.
    optimizer, batch_rows, device : optional
        Settings that are fixed; by default adagrad, 256 rows and more, and all devices there are.
    lazy : bool
        Whether an update may be recommended that trains another model than dense training.
    run : path, optional
        Run folder; by default one below `runs`, named after data and model. It is gone on with.
    framework : str, optional
        "pytorch", "tensorflow", "keras", "jax" or "sklearn": which way to train inside that framework, its own dense
        and sparse ways against ours through the bridge, with plain SGD. Needs labels that are classes.
    epochs : int
        Passes over the data that training times are said for.
    loss : callable, optional
        `loss(outputs, y)` of a model of PyTorch; by default cross entropy for classes, squared error for numbers.
    **reading
        Settings of the reader, as of `load`.

    Returns
    -------
    Advice, FrameworkAdvice, ModelAdvice or RecommenderAdvice
        The recommendation with its grounds, all candidates, and the code that trains so.

    Raises
    ------
    ValueError
        If the data or a setting cannot be used; the message says what to type.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import workbench as wb
    >>> wb.advise([[1.0, 0.0], [0.0, 1.0]], ["a", "b"], budget=1)
    Traceback (most recent call last):
    ...
    workbench.sweeps.spec.SpecError: budget is 1; expected 5 or more seconds, 60 is usual.
    Type budget=60.
    """
    if isinstance(model, str) and model in RECOMMENDERS:
        return compare_recommenders(X, **reading)
    refuse_misspelled(reading, inspect.signature(advise).parameters)
    usual = SECONDS if framework is None else SECONDS_FRAMEWORK
    seconds, start = _seconds(usual if budget is None else budget), time.monotonic()
    if framework is not None:
        return _ask_framework(framework, receive(X, y, label, reading), seconds, batch_rows)
    if model is not None and not isinstance(model, str):
        from workbench.advising.frameworks.model_answer import answer_for_model

        loaded = receive(X, y, label, reading)
        if not loaded.is_labelled:
            raise SpecError("Training steps of a model need labels.\nType wb.advise(X, y, model=model).")
        more = {"batch_rows": batch_rows, "optimizer": optimizer, "loss": loss, "lazy": lazy}
        return ModelAdvice(answer_for_model(model, loaded.dataset, budget=seconds, **more))
    given = {"model": model, "optimizer": optimizer, "batch_rows": batch_rows, "device": device}
    fixed = {name: value for name, value in given.items() if value is not None}
    loaded = receive(X, y, label, reading)
    folder = Path(run) if run is not None else None if loaded.settings else sweeping.run_of(loaded, "advise-")
    settings = sweeping.settings_of(loaded, folder or Path()) | fixed
    validate_spec({"name": "advise", "axes": fixed})  # before anything is written
    sweeping.write_once(loaded, folder or Path())
    spent = time.monotonic() - start
    said = loaded.dataset.facts.get("guesses", ())  # by `received`
    answer = measure(
        settings,
        seconds,
        lazy=lazy,
        folder=folder,
        follow=sweeping.follow,
        seconds_spent=spent,
        say=lambda sentence: None if sentence in said else say(worded(sentence)),
        epochs=epochs,
    )
    return Advice(answer, loaded)


def _ask_framework(framework: str, loaded: Loaded, seconds: float, batch_rows: int | None) -> FrameworkAdvice:
    """Measure the ways to train in `framework` within `seconds`, and return the advice; SpecError without labels.

    `batch_rows` None takes the usual batch size.
    """
    from workbench.advising.frameworks import answer_for

    if not loaded.is_labelled:
        raise SpecError(
            "Advice for a framework needs labels, one class for each row.\nType wb.advise(X, y, framework=...)."
        )
    load = load_call(loaded.settings) if loaded.settings else ""
    return FrameworkAdvice(answer_for(framework, loaded.dataset, budget=seconds, batch_rows=batch_rows, load=load))


def _seconds(budget: Any) -> float:
    """Return the budget in seconds; SpecError unless it is a finite number of at least 5."""
    is_number = isinstance(budget, int | float) and not isinstance(budget, bool)
    if not is_number or not 5 <= budget < float("inf"):
        raise SpecError(f"budget is {budget!r}; expected 5 or more seconds, 60 is usual.\nType budget=60.")
    return float(budget)
