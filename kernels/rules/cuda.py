"""Generation of a rule's formula as CUDA code: a formula backend that writes C++."""

from typing import TYPE_CHECKING, final

from kernels.formula import Backend, Float, Truth

if TYPE_CHECKING:
    from kernels.rules.rule import Rule


@final
class Lines(Backend):
    """Backend that writes lines of C++, each assigning a result to a name; values of `Float` are names."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def named(self, name: str) -> Float:
        """Return the variable `name`."""
        return Float(self, name)

    def _keep(self, kind: str, expression: str) -> str:
        """Append a line that assigns an expression to a new name, and return the name."""
        self.lines.append(f"const {kind} t{len(self.lines)} = {expression};")
        return f"t{len(self.lines) - 1}"

    def arithmetic(self, sign: str, one: Float | float, other: Float | float) -> Float:
        """Write one arithmetic operation."""
        return Float(self, self._keep("T", f"{word(one)} {sign} {word(other)}"))

    def compared(self, sign: str, one: Float | float, other: Float | float) -> Truth:
        """Write one comparison."""
        return Truth(self, self._keep("bool", f"{word(one)} {sign} {word(other)}"))

    def chosen(self, condition: Truth, one: Float | float, other: Float | float) -> Float:
        """Write the conditional operator."""
        return Float(self, self._keep("T", f"{condition.value} ? {word(one)} : {word(other)}"))

    def called(self, function: str, *arguments: Float | float) -> Float:
        """Write a call of a function that CUDA has for float and double."""
        return Float(self, self._keep("T", f"{function}({', '.join(map(word, arguments))})"))


def word(number: Float | float) -> str:
    """Return a variable's name, or a constant, as C++."""
    return number.value if isinstance(number, Float) else f"(T){float(number)!r}"


def _settings_of(rule: "Rule") -> int:
    """Return the number of settings of the formula."""
    return len(rule.settings(*rule.example))


def _function(head: str, backend: Lines, results: list[str]) -> str:
    """Return a C++ function with the lines of the backend."""
    lines = [f"        {line}" for line in (*backend.lines, *results)]
    return "\n".join(("    template <class T>", f"    static __device__ {head} {{", *lines, "    }"))


def cuda_of(rule: "Rule") -> str:
    """Return the struct `Rule` for `updates.cuh`: counts of states and settings, the step, and what is averaged."""
    count, states = _settings_of(rule), len(rule.states)
    stepping, averaging = Lines(), Lines()
    names, places = [f"settings[{k}]" for k in range(count)], [f"state[{k}]" for k in range(states)]
    means = ["mean"] if rule.average else []
    new = rule.formula(*map(stepping.named, ("w", *places, "g", *means, *names)))
    results = [f"{target} = {word(value)};" for target, value in zip(("w", *places), new, strict=True)]
    step = _function("void step(T& w, T* state, T g, T mean, const T* settings)", stepping, results)
    average = word(rule.average(*map(averaging.named, ("w", "g", *names)))) if rule.average else "(T)0"
    averaged = _function("T average(T w, T g, const T* settings)", averaging, [f"return {average};"])
    by_row = "true" if rule.average else "false"
    head = f"static constexpr int STATES = {states}, SETTINGS = {count};\n    static constexpr bool BY_ROW = {by_row};"
    return f"struct Rule {{\n    {head}\n\n{step}\n\n{averaged}\n}};\n"
