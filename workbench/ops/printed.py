"""The table of all operators as Markdown, made from the operators themselves."""

from workbench.ops.contract import REQUIRED, Op, Rule, get, names

HEADER = (
    "| formats | condition | result | kernel |",
    "|---------|-----------|--------|--------|",
)


def documentation() -> str:
    """Every operator by family: what it computes, parameters, whether it has a gradient, and its rules.

    A last row says what happens where no rule holds; a rule that refuses has the reason in place of a result.
    """
    lines = ["# Operators", ""]
    for family in sorted({get(name).family for name in names()}):
        lines += [f"## {family}", ""]
        for op in (get(name) for name in names()):
            if op.family == family:
                lines += [*_entry(op), ""]
    return "\n".join(lines)


def _entry(op: Op) -> list[str]:
    shown = ", ".join(
        [*op.inputs, *(f"{name}={value!r}" for name, value in op.params.items() if value is not REQUIRED)]
    )
    required = ", ".join(name for name, value in op.params.items() if value is REQUIRED)
    facts = [op.doc.rstrip("."), f"parameters required: {required}" if required else ""]
    facts.append("with a gradient" if op.gradient else f"without a gradient. {op.no_gradient}".rstrip(". "))
    text = "; ".join(fact for fact in facts if fact)
    return [f"### {op.name}({shown})", "", f"{text}.", "", *HEADER, *map(_row, _merged(op.rules)), _last(op)]


def _merged(rules: tuple[Rule, ...]) -> list[tuple[str, str, str, str]]:
    """Cells of the rules; those that differ in formats alone become one row."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for rule in rules:
        inputs = ", ".join("..." if word is ... else word for word in rule.inputs) or "-"
        kept = "dense" != rule.result in rule.inputs
        result = f"refused: {rule.refusal}" if rule.refusal else "as the sparse input" if kept else rule.result
        rows.setdefault((rule.condition or "-", result, rule.kernel), []).append(inputs)
    return [("; ".join(inputs), *cells) for cells, inputs in rows.items()]


def _row(cells: tuple[str, str, str, str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _last(op: Op) -> str:
    if not op.inputs:
        return _row(("-", "otherwise", "an error", "-"))
    return _row(("any other", "-", "dense, with a warning unless all are dense", "numpy"))
