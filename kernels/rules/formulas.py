"""A rule's formula as CUDA code: the Python function is called once with values that write down what is done to them.

It is the same function that is made into vector code on the CPU, through the same `kernels.vector.values`; the
builder here writes C++ where LLVM's makes instructions.
"""

from typing import TYPE_CHECKING, NamedTuple

from llvmlite import ir

from kernels.vector.values import Float

if TYPE_CHECKING:
    from kernels.rules.rule import Rule

OPERATORS = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/"}
FUNCTIONS = {"fmuladd": "fma"}
"""Functions of LLVM that have another name in C++."""


class Text(NamedTuple):
    """An expression of C++: a name or a number."""

    name: str
    type: ir.Type = ir.DoubleType()


class Writer:
    """A lane and its builder: every operation becomes a line that gives its result a name."""

    element, bits = ir.DoubleType(), 64

    def __init__(self) -> None:
        self.builder = self
        self.lines: list[str] = []

    def value(self, name: str) -> Float:
        """The variable `name`."""
        return Float(self, Text(name))

    def _keep(self, kind: str, expression: str) -> Text:
        self.lines.append(f"const {kind} t{len(self.lines)} = {expression};")
        return Text(f"t{len(self.lines) - 1}")

    def declare(self, name: str, *_: object) -> str:
        """The C++ function for LLVM's of that name."""
        name = name.split(".")[1]
        return FUNCTIONS.get(name, name)

    def call(self, function: str, values: list) -> Text:
        """A call of a function that `declare` gave."""
        return self._keep("T", f"{function}({', '.join(map(self.word, values))})")

    def fcmp_ordered(self, operator: str, one: object, other: object) -> Text:
        """A comparison, false for NaN."""
        return self._keep("bool", f"{self.word(one)} {operator} {self.word(other)}")

    def select(self, condition: Text, one: object, other: object) -> Text:
        """One of two values."""
        return self._keep("T", f"{condition.name} ? {self.word(one)} : {self.word(other)}")

    def __getattr__(self, name: str):
        if name not in OPERATORS:
            raise AttributeError(f"A formula uses {name!r}, for which there is no C++ here; add it to {__name__}.")
        return lambda one, other: self._keep("T", f"{self.word(one)} {OPERATORS[name]} {self.word(other)}")

    @staticmethod
    def word(value: object) -> str:
        """A variable's name, or a constant."""
        return f"(T){value.constant!r}" if isinstance(value, ir.Constant) else value.name


def _settings_of(rule: "Rule") -> int:
    return len(rule.settings(*rule.example))


def _function(head: str, writer: Writer, results: list[str]) -> str:
    lines = [f"        {line}" for line in (*writer.lines, *results)]
    return "\n".join(("    template <class T>", f"    static __device__ {head} {{", *lines, "    }"))


def cuda_of(rule: "Rule") -> str:
    """The struct `Rule` for `updates.cuh`: the numbers of states and settings, the step and what is averaged."""
    count, states = _settings_of(rule), len(rule.states)
    writer = Writer()
    names = [f"settings[{k}]" for k in range(count)]
    settings = list(map(writer.value, names))
    old = [writer.value("w"), *[writer.value(f"state[{k}]") for k in range(states)], writer.value("g")]
    new = rule.formula(*old, *([writer.value("mean")] if rule.average else []), *settings)
    targets = ["w", *[f"state[{k}]" for k in range(states)]]
    results = [f"{target} = {Writer.word(value.value)};" for target, value in zip(targets, new, strict=True)]
    step = _function("void step(T& w, T* state, T g, T mean, const T* settings)", writer, results)
    averager, average = Writer(), "(T)0"
    if rule.average:
        given = [averager.value(name) for name in ("w", "g", *names)]
        average = Writer.word(rule.average(*given).value)
    head = "T average(T w, T g, const T* settings)"
    averaged = _function(head, averager, [f"return {average};"])
    by_row = "true" if rule.average else "false"
    head = f"static constexpr int STATES = {states}, SETTINGS = {count};\n    static constexpr bool BY_ROW = {by_row};"
    return f"struct Rule {{\n    {head}\n\n{step}\n\n{averaged}\n}};\n"
