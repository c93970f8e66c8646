"""Shortening of names."""


def cut(name: str, longest: int = 28) -> str:
    """Return the name, its middle replaced by an ellipsis if it is longer than `longest`."""
    if len(name) <= longest:
        return name
    return f"{name[: longest - longest // 3 - 1]}…{name[-(longest // 3) :]}"
