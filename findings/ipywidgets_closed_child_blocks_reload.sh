#!/usr/bin/env bash
# ipywidgets 8.1.9: one open box with a closed child, and no widget of the kernel comes back after a page is reloaded.
#
# After a reload the page asks the kernel for the states of all widgets (request_states). The handler goes through all open
# widgets; get_state() of a box whose child was closed raises AttributeError, so nothing is answered: the page gets no
# widget at all, also none that has nothing to do with the box. Closing one part of a box is ordinary use.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ipywidgets==8.1.9 ipykernel==7.4.0 jupyter_client==8.10.0
cat >"$folder/show.py" <<'PY'
import queue
import sys

import ipywidgets
from jupyter_client.manager import start_new_kernel

print("ipywidgets", ipywidgets.__version__)
manager, client = start_new_kernel()


def run(code):
    """Run code in the kernel; raise if it fails."""
    reply = client.execute_interactive(code, output_hook=lambda message: None, timeout=60)
    assert reply["content"]["status"] == "ok", reply["content"]


def ask():
    """Ask for the states of all widgets, as a reloaded page does; return the count that came, and what was printed."""
    opened = {"comm_id": "page", "target_name": "jupyter.widget.control", "data": {}, "target_module": None}
    asked = {"comm_id": "page", "data": {"method": "request_states"}}
    states, printed = None, ""
    for kind, content in (("comm_open", opened), ("comm_msg", asked)):
        client.shell_channel.send(client.session.msg(kind, content, metadata={"version": "1.0.0"}))
    try:
        while states is None:
            message = client.get_iopub_msg(timeout=5)
            states = message["content"].get("data", {}).get("states") if message["msg_type"] == "comm_msg" else None
            printed += message["content"].get("text", "") if message["msg_type"] == "stream" else ""
    except queue.Empty:
        pass
    client.shell_channel.send(client.session.msg("comm_close", {"comm_id": "page", "data": {}}))
    return states and len(states), printed


run("from ipywidgets import HTML, IntSlider, VBox; other = IntSlider(3); part = HTML('a'); box = VBox([part])")
before, _ = ask()
print("all open: states of", before, "models came")
run("part.close()")
after, printed = ask()
print("after part.close(): states of", after, "models came;", (printed.strip().splitlines() or ["nothing printed"])[-1])
client.stop_channels()
manager.shutdown_kernel(now=True)
same = bool(before) and after is None and "'NoneType' object has no attribute 'comm_id'" in printed
print("As described: no widget comes back." if same else "CHANGED")
sys.exit(not same)
PY
"$folder/venv/bin/python" "$folder/show.py"
