"""Names made to fit."""


def cut(name: str, longest: int = 28) -> str:
    """A name of at most that length, its middle left out."""
    if len(name) <= longest:
        return name
    return f"{name[: longest - longest // 3 - 1]}…{name[-(longest // 3) :]}"
