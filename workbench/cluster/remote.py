"""A trainer's work as text: what is asked by name and JSON, and answered in JSON, also where it failed."""

import importlib
import json
import sys
import traceback

from workbench.cluster.channel import GoneError, RolledBackError, TimedOutError
from workbench.cluster.trainer import Job, Tell
from workbench.cluster.transport import Transport
from workbench.data import DataError
from workbench.formats import FormatError
from workbench.models import ModelError
from workbench.sweeps.spec import SpecError

WRONG = (DataError, FormatError, ModelError, SpecError)
WORK = "workbench.cluster.trainer:train"
"""What trainers do, as "module:function"."""


def answer(work: str, transport: Transport, trainer: int, request: str, tell: Tell) -> str:
    """Do the work of a request, a `Job`; {"answer": ...}, or {"error", "trace", "is_cut_off", "is_wrong"} on failure.

    `is_cut_off` says that another process was missed, so that the reason is to be looked for there; `is_wrong` that
    what was asked for cannot be trained, as the error says by itself.
    """
    try:
        module, function = work.split(":")
        done = getattr(importlib.import_module(module), function)
        return json.dumps({"answer": done(transport, trainer, Job(**json.loads(request)), tell)})
    except Exception as error:  # whatever it is, it is told to who asked, and printed into the log here
        traceback.print_exc(file=sys.stderr)
        is_cut_off = isinstance(error, TimedOutError | RolledBackError | GoneError)
        told = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc(), "is_cut_off": is_cut_off}
        return json.dumps(told | {"is_wrong": isinstance(error, WRONG)})
