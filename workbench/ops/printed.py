"""The table of all operators as Markdown, generated from the operators."""

from workbench.ops.contract import REQUIRED, Op, Rule, get, names

HEADER = (
    "| formats | condition | result | kernel |",
    "|---------|-----------|--------|--------|",
)


def documentation() -> str:
    """Describe every operator by family: meaning, parameters, gradient and rules, as Markdown.

    Returns
    -------
    str
        Markdown text. The last row of an operator states what happens without a rule.

    Examples
    --------
    >>> documentation().startswith("#")
    True
    """
    lines = ["# Operators", ""]
    for family in sorted({get(name).family for name in names()}):
        lines += [f"## {family}", ""]
        for op in (get(name) for name in names()):
            if op.family == family:
                lines += [*_entry(op), ""]
    return "\n".join(lines)


def _entry(op: Op) -> list[str]:
    """Return the lines of Markdown of an operator."""
    shown = ", ".join(
        [*op.inputs, *(f"{name}={value!r}" for name, value in op.params.items() if value is not REQUIRED)]
    )
    required = ", ".join(name for name, value in op.params.items() if value is REQUIRED)
    facts = [op.doc.rstrip("."), f"parameters required: {required}" if required else ""]
    facts.append("with a gradient" if op.gradient else f"without a gradient. {op.no_gradient}".rstrip(". "))
    text = "; ".join(fact for fact in facts if fact)
    return [f"### {op.name}({shown})", "", f"{text}.", "", *HEADER, *map(_row, _merged(op.rules)), _last(op)]


def _merged(rules: tuple[Rule, ...]) -> list[tuple[str, str, str, str]]:
    """Return the table configurations of the rules; rules that differ in formats only are merged."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for rule in rules:
        inputs = ", ".join("..." if word is ... else word for word in rule.inputs) or "-"
        kept = "dense" != rule.result in rule.inputs
        result = f"refused: {rule.refusal}" if rule.refusal else "as the sparse input" if kept else rule.result
        rows.setdefault((rule.condition or "-", result, rule.kernel), []).append(inputs)
    return [("; ".join(inputs), *cells) for cells, inputs in rows.items()]


def _row(cells: tuple[str, str, str, str]) -> str:
    """Return a Markdown table row."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _last(op: Op) -> str:
    """Return the description of the fallback of an operator."""
    if not op.inputs:
        return _row(("-", "otherwise", "an error", "-"))
    return _row(("any other", "-", "dense, with a warning unless all are dense", "numpy"))
