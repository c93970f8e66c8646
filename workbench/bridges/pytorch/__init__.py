"""PyTorch: sparse rows as tensors, modules on our kernels, our lazy optimizers, and data for its DataLoader.

Two lines of a script that has an EmbeddingBag change: the layer, and the optimizer.

    model = SparseEmbeddingBag(features, classes, mode="sum")  # torch.nn.EmbeddingBag(..., sparse=True)
    optimizer = LazyAdam(model.parameters(), lr=0.01)  # torch.optim.SparseAdam(list(model.parameters()), lr=0.01)

A script that begins with sparse data:

>>> import torch
>>> from workbench import data
>>> from workbench.bridges.pytorch import FeedDataset, LazyAdam, SparseLinear
>>> train = data.load("uniform", rows=400, features=60, density=0.1, cache=False)
>>> batches = torch.utils.data.DataLoader(FeedDataset(train, rows=50, shuffle=True), batch_size=None)
>>> model = SparseLinear(train.features, 1)
>>> optimizer = LazyAdam(model.parameters(), lr=0.1)
>>> losses = []
>>> for epoch in range(5):
...     batches.dataset.set_epoch(epoch)
...     for rows, labels in batches:
...         optimizer.zero_grad()
...         scores = model(rows)[:, 0]
...         loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, labels.float())
...         loss.backward()
...         optimizer.step()
...         losses.append(loss.item())
>>> losses[-1] < losses[0]
True

`SparseLinear` and `SparseEmbeddingBag` compute on sparse rows, `SparseRows` or what `rows_of` makes them of, and give
their weight a row-sparse gradient. `LazyAdam` and its like, one for each of `workbench.optimizers`, step the rows that
a gradient holds, also those of torch.nn.EmbeddingBag(sparse=True). `to_tensor`, `from_tensor` and `to_bags` hand
matrices over to PyTorch's own operators, and check what these read without a look. `FeedDataset` and `RowDataset` give
a DataLoader batches, in this process and in workers. `check_loader` says what workers do wrong, `check_optimizer` which
weights an optimizer of torch.optim refuses or steps badly, `require_row_sparse` whether a gradient became dense.

Kernels run on `torch.get_num_threads()` threads, on the CPU.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from workbench import optimizers
from workbench.bridges import facts
from workbench.bridges.contracts import Violation, class_name, class_names, described, rule_of
from workbench.bridges.pytorch.layers import SparseEmbeddingBag, SparseLinear, sparse_product, to_bags
from workbench.bridges.pytorch.library import follow, torch
from workbench.bridges.pytorch.rows import (
    FeedDataset,
    RowDataset,
    SparseRows,
    check_loader,
    collate,
    from_tensor,
    init_worker,
    require_row_sparse,
    rows_of,
    to_tensor,
)
from workbench.bridges.pytorch.steps import NAME, Steps, array_of, gradient_of, tensor_of
from workbench.bridges.validation_rules import ERROR, WARNING
from workbench.optimizers import OptimizerError, Updater

SPELLED = {"learning_rate": "lr", "epsilon": "eps", "decay": "weight_decay"}
"""Options by the names that PyTorch has for them; beta1 and beta2 are its betas. Others keep ours."""

PAIR = ("beta1", "beta2")

FURTHER_KEYS = ("params", "param_names", "name", "initial_lr")
"""What else a parameter group may hold when it is given."""


def spelled(options: Mapping[str, float]) -> dict[str, Any]:
    """Return the options of ours as a parameter group has them: by PyTorch's names, beta1 and beta2 as `betas`."""
    paired = PAIR if "beta2" in options else ()
    betas = {"betas": tuple(options[name] for name in paired)} if paired else {}
    return {SPELLED.get(name, name): value for name, value in options.items() if name not in paired} | betas


def ours(group: Mapping[str, Any], rule: str) -> dict[str, Any]:
    """Return the options of a rule that a parameter group has, by our names; the learning rate becomes a float.

    Raises OptimizerError if the group lacks one, or betas are not two numbers.
    """
    known = optimizers.get(rule).options
    try:
        paired = dict(zip(PAIR, group["betas"], strict=True)) if "beta2" in known else {}
        options = {name: group[SPELLED.get(name, name)] for name in known if name not in paired}
    except (KeyError, TypeError, ValueError) as error:
        wanted = ", ".join(spelled(known))
        raise OptimizerError(
            f"A parameter group of {class_name(rule)} has {wanted}, betas two numbers: {error}."
        ) from None
    return options | paired | {"learning_rate": float(options["learning_rate"])}  # a scheduler's may be a tensor


class LazyOptimizer(torch.optim.Optimizer):
    """An optimizer of `workbench.optimizers`, the one named `rule`; `LazyAdam` and its like say which.

    `lazy` is on, off or exact, as there. With `fused`, SparseLinear and SparseEmbeddingBag leave their gradient as
    factors, which one kernel sums and applies: the fastest step. But `.grad`, and what torch.autograd.grad gives, then
    only mark that there is a gradient: clip by `clip_grad_norm_` of this class, and call `settle()` before anything
    else looks at it. Reading `param_groups` calls it, so that torch.amp.GradScaler scales and checks the gradient, and
    a weight with hooks is given its gradient at once. Options, and their defaults, are those of the rule; `rescale` and
    `clip`, by element, among them. Groups may have others, and schedulers may change them; unknown ones are refused
    (`OptimizerError`).

    Parameters are dense, contiguous, float32 or float64, on the CPU. With `lazy="exact"` rows catch up when our modules
    read them and before they are saved; call `catch_up()` before anything else reads the weight.
    """

    rule: ClassVar[str] = ""

    def __init__(
        self, params: Iterable[Any], lr: float | None = None, *, lazy: str = "on", fused: bool = False, **options: Any
    ) -> None:
        """Make an updater for each parameter; `lr` of None is the rule's own rate.

        Raises OptimizerError for an unknown option, a parameter that is not dense on the CPU, and on this class itself,
        which has no rule.
        """
        if not self.rule:
            raise OptimizerError(f"LazyOptimizer has no rule; take one of {', '.join(class_names())}.")
        self.lazy, self.fused = lazy, fused
        self._steps: dict[torch.Tensor, Steps] = {}
        defaults = spelled(optimizers.get(self.rule).options)
        _check_known(self.rule, options, defaults)
        super().__init__(params, defaults | options | ({} if lr is None else {"lr": lr}))

    def __getstate__(self) -> dict[str, Any]:
        """Raise TypeError: an optimizer is neither copied nor pickled, its `state_dict` is what goes on."""
        raise TypeError(
            f"A {type(self).__name__} is not copied or pickled; make a new one and load state_dict() there."
        )

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Parameter groups. Gradients that layers left are put into `.grad` first, for what reads them from here."""
        self.settle()
        return self.__dict__["param_groups"]

    @param_groups.setter
    def param_groups(self, groups: list[dict[str, Any]]) -> None:
        """Replace the groups, as torch.optim.Optimizer does."""
        self.__dict__["param_groups"] = groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take a group of parameters with its options, in place.

        Raises OptimizerError for an unknown option or a parameter that kernels cannot step; the group is then left out.
        """
        if isinstance(param_group, dict):
            _check_known(self.rule, param_group, (*self.defaults, *FURTHER_KEYS))
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            for parameter in group["params"]:
                self._steps[parameter] = Steps(parameter, self._updater(group), self.fused)
        except OptimizerError:
            self.param_groups.pop()
            raise

    def _updater(self, group: Mapping[str, Any]) -> Updater:
        """Return a new `Updater` with the options of a parameter group.

        Raises OptimizerError for options that do not fit.
        """
        return Updater(self.rule, lazy=self.lazy, **ours(group, self.rule))

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step every parameter that has a gradient, in place.

        Return what `closure` gives, which is called first, or None. Raises OptimizerError for options or gradients that
        the rule does not take.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        follow()
        for group in self.__dict__["param_groups"]:  # which leaves gradients as they are
            options = None
            for parameter in group["params"]:
                steps = self._steps[parameter]
                gradient = steps.gradient(parameter)
                if gradient is not None:
                    options = options or ours(group, self.rule)
                    steps.updater.options.update(options)
                    steps.step(parameter, gradient)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop gradients, those too that layers left, which a module's `zero_grad(set_to_none=False)` does not see.

        With `set_to_none` `.grad` becomes None, else zeros in place.
        """
        for steps in self._steps.values():
            steps.clear()
        super().zero_grad(set_to_none)

    def settle(self) -> None:
        """Put the gradients that layers left into `.grad`, where anyone can read and change them."""
        for parameter, steps in self._steps.items():
            steps.settle(parameter)

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float) -> torch.Tensor:
        """Scale all gradients in place to a joint norm of at most `max_norm`, as torch.nn.utils does.

        Return the norm before. The norm is a float64 tensor without dimensions. Includes row-sparse gradients, which
        torch.nn.utils refuses in PyTorch 2.13, and gradients kept by layers. At least one parameter needs a gradient.
        """
        self.settle()
        values = []
        for parameter in self._steps:
            if parameter.grad is not None and parameter.grad.layout is not torch.strided:
                parameter.grad = tensor_of(gradient_of(parameter.grad))  # no row twice
                values.append(parameter.grad._values())
            elif parameter.grad is not None:
                values.append(parameter.grad)
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(each).double() for each in values]))
        for each in values:
            each.mul_(torch.clamp(max_norm / (norm + 1e-6), max=1.0).to(each.dtype))
        return norm

    @torch.no_grad()
    def catch_up(self) -> None:
        """Bring all rows to the last step in place, where lazy is exact, before others than our modules read them."""
        for parameter, steps in self._steps.items():
            steps.catch_up(parameter)

    # Saving

    def state_dict(self) -> dict[str, Any]:
        """Return groups and states as PyTorch's: `state` has by number of parameter its updater's arrays as tensors.

        Tensors are over the memory of what the updater gives; a parameter without a step has none. Rows catch up first:
        a module that is saved after this one would save rows that have, which a record of missed steps does not fit.
        """
        self.catch_up()
        state = {}
        for number, parameter in enumerate(self._parameters()):
            updater = self._steps[parameter].updater
            if updater.parameters:
                state[number] = {name: torch.from_numpy(array) for name, array in updater.state_dict().items()}
        return super().state_dict() | {"state": state}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a `state_dict` of an optimizer with the same rule, `lazy` and parameters: the same bits follow.

        A state may come from anyone's file. Raises OptimizerError for what does not fit, and then nothing changes.
        """
        saved = [group for group in state_dict["param_groups"] for _ in group["params"]]
        updaters = [self._updater(group) for group in saved]
        for number, (parameter, updater) in enumerate(zip(self._parameters(), updaters, strict=False)):
            if (tensors := state_dict["state"].get(number)) is not None:
                read = updater.read_state({name: _array(name, tensor) for name, tensor in tensors.items()})
                updater.check_fit(read, {NAME: array_of(parameter)})
                updater.take_state(read)
        super().load_state_dict({**state_dict, "state": {}})
        for parameter, updater in zip(self._parameters(), updaters, strict=True):
            self._steps[parameter].updater = updater
            self._steps[parameter].clear()

    def _parameters(self) -> list[torch.Tensor]:
        """Return the parameters of all groups, in the order of the groups, the tensors themselves."""
        return [parameter for group in self.param_groups for parameter in group["params"]]


def _array(name: str, tensor: Any) -> Any:
    """Return a state's tensor as a NumPy array over its memory, copied if it has gaps.

    Raises OptimizerError if it is none.
    """
    if not isinstance(tensor, torch.Tensor):
        raise OptimizerError(f"The state's {name!r} is a {type(tensor).__name__}; it is a tensor.")
    return tensor.detach().contiguous().numpy()


def _check_known(rule: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise OptimizerError, with the known options, if a name in `given` is not in `known`."""
    if unknown := sorted(set(given) - set(known)):
        options = ", ".join(sorted(set(known) - set(FURTHER_KEYS)))
        raise OptimizerError(f"{class_name(rule)} has no option {', '.join(unknown)}; its options are {options}.")


# Check of an optimizer before it trains: row-sparse gradients that it refuses, or that cost more with every step.

OPTIMIZER_BOUNDARY = "model -> optimizer"
TAKE_ROWS = ("SGD", "Adagrad", "SparseAdam", "LBFGS")
"""Optimizers of torch.optim that take row-sparse gradients."""


def check_optimizer(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> list[Violation]:
    """Return a violation for each weight with row-sparse gradients that its optimizer refuses or steps badly.

    Weights are those of Embedding and EmbeddingBag with sparse=True, SparseLinear and SparseEmbeddingBag; optimizers
    are those of torch.optim, with [] for any other. Errors are optimizers, and weight decay, that refuse such
    gradients; warnings are SGD with momentum, whose buffer grows with every step, and SGD on a weight of one column,
    which does not move for a batch of one id.

    >>> model = torch.nn.Embedding(10, 2, sparse=True)
    >>> for violation in check_optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)):
    ...     print(f"{violation.severity}: {violation.came}.")
    warning: SGD steps weight, of row-sparse gradients, with momentum 0.9.
    """
    if not type(optimizer).__module__.startswith("torch.optim."):
        return []
    return [
        violation
        for name, module in model.named_modules()
        for group in optimizer.param_groups
        if _has_row_sparse_gradient(module) and any(module.weight is weight for weight in group["params"])
        for violation in _check_group(type(optimizer).__name__, group, module, f"{name}.weight".removeprefix("."))
    ]


def _has_row_sparse_gradient(module: torch.nn.Module) -> bool:
    """Return whether the gradient of the module's weight is row-sparse."""
    lookups = torch.nn.Embedding | torch.nn.EmbeddingBag
    return isinstance(module, SparseLinear | SparseEmbeddingBag) or (isinstance(module, lookups) and module.sparse)


def _check_group(kind: str, group: Mapping[str, Any], module: torch.nn.Module, name: str) -> Iterator[Violation]:
    """Yield the violations of the weight `name` of a module by an optimizer of torch.optim, the class `kind`."""
    known, came = facts.of("pytorch"), f"{kind} steps {name}, of row-sparse gradients"
    found = []
    if kind not in TAKE_ROWS:
        lazy = f"Lazy{kind}" if f"Lazy{kind}" in class_names() else "LazyAdam"
        found.append((ERROR, "", lazy, "adam_of_sparse_gradients"))
    elif group.get("weight_decay"):
        how = f", with weight decay {group['weight_decay']}"
        found.append((ERROR, how, f"Lazy{kind}", "weight_decay_of_sparse_gradients"))
    if kind == "SGD" and group["momentum"]:
        found.append((WARNING, f", with momentum {group['momentum']}", "LazyMomentum", "momentum_of_sparse_gradients"))
    if kind == "SGD" and isinstance(module, torch.nn.Embedding) and module.embedding_dim == 1:
        found.append((WARNING, ", of one column", "LazySGD", "step_of_one_value"))
    for severity, how, lazy, fact in found:
        expected = "an optimizer that steps such rows"
        advice, effect = f"Take {lazy} of workbench.bridges.pytorch", known[fact].sentence
        yield Violation("optimizer", OPTIMIZER_BOUNDARY, severity, f"{came}{how}", expected, advice, effect)


# Classes by name


_made: dict[str, type[LazyOptimizer]] = {}


def class_of(name: str) -> type[LazyOptimizer]:
    """Return the class of that name, made on the first call, one for each optimizer that is registered.

    Raises AttributeError, with the names there are, for another.
    """
    if name not in _made:
        rule = rule_of(name)
        members = {"rule": rule, "__doc__": described(rule), "__module__": __name__}
        _made[name] = type(name, (LazyOptimizer,), members)
    return _made[name]


__all__ = [
    "FeedDataset",
    "LazyOptimizer",
    "RowDataset",
    "SparseEmbeddingBag",
    "SparseLinear",
    "SparseRows",
    "check_loader",
    "check_optimizer",
    "collate",
    "from_tensor",
    "init_worker",
    "require_row_sparse",
    "rows_of",
    "sparse_product",
    "to_bags",
    "to_tensor",
]


def __getattr__(name: str) -> Any:
    """Return the optimizer class of that name, such as LazyAdam. Raises AttributeError for any other name."""
    if not name.startswith("Lazy"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return class_of(name)


def __dir__() -> list[str]:
    """Return the names of this module, sorted, with those of the optimizer classes."""
    return sorted([*__all__, *class_names()])
