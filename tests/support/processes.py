"""Other processes, which may end while they are asked."""

import psutil


def is_gone(pid: int) -> bool:
    """Whether the process has ended; so has one that nobody waits for."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def grandchildren(pid: int) -> list[psutil.Process]:
    """The processes that children of the process have started, and theirs."""
    try:
        children = {child.pid for child in psutil.Process(pid).children()}
        return [one for one in psutil.Process(pid).children(recursive=True) if one.pid not in children]
    except psutil.NoSuchProcess:
        return []
