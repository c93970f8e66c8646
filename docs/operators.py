"""The table of all operators as Markdown, generated from the operators."""

from workbench import ops

HEADER = ("| formats | condition | result | kernel |", "|---------|-----------|--------|--------|")


def describe_operators() -> str:
    """Describe every operator by family: meaning, parameters, gradient and rules, as Markdown.

    The last row of an operator states what happens without a rule.
    """
    lines = ["# Operators", ""]
    for family in sorted({ops.get(name).family for name in ops.names()}):
        lines += [f"## {family}", ""]
        for op in (ops.get(name) for name in ops.names()):
            if op.family == family:
                lines += [*_entry(op), ""]
    return "\n".join(lines)


def _entry(op: ops.Op) -> list[str]:
    """Return the Markdown lines of an operator: heading, description, parameters, table of rules."""
    shown = ", ".join(
        [*op.inputs, *(f"{name}={value!r}" for name, value in op.params.items() if value is not ops.REQUIRED)]
    )
    required = ", ".join(name for name, value in op.params.items() if value is ops.REQUIRED)
    facts = [op.doc.rstrip("."), f"parameters required: {required}" if required else ""]
    facts.append("with a gradient" if op.gradient else f"without a gradient. {op.no_gradient}".rstrip(". "))
    text = "; ".join(fact for fact in facts if fact)
    return [f"### {op.name}({shown})", "", f"{text}.", "", *HEADER, *map(_row, _merge_rules(op.rules)), _last(op)]


def _merge_rules(rules: tuple[ops.Rule, ...]) -> list[tuple[str, str, str, str]]:
    """Return rows (formats, condition, result, kernel) of the table; rules that differ in formats only share one."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for rule in rules:
        inputs = ", ".join("..." if word is ... else word for word in rule.inputs) or "-"
        kept = "dense" != rule.result in rule.inputs
        result = f"refused: {rule.refusal}" if rule.refusal else "as the sparse input" if kept else rule.result
        rows.setdefault((rule.condition or "-", result, rule.kernel), []).append(inputs)
    return [("; ".join(inputs), *cells) for cells, inputs in rows.items()]


def _row(cells: tuple[str, str, str, str]) -> str:
    """Return four cells as a row of a Markdown table, with bars escaped and line ends replaced by spaces."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _last(op: ops.Op) -> str:
    """Return the last row of an operator's table: what happens without a rule."""
    if not op.inputs:
        return _row(("-", "otherwise", "an error", "-"))
    return _row(("any other", "-", "dense, with a warning unless all are dense", "numpy"))
