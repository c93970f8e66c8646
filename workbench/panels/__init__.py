"""Panels for JupyterLab. State first, widget last: `state` decides without Jupyter, widgets show it and pass choices.

A panel never measures. The sweep runs in a separate process and writes its run folder; a panel reads that folder, so
stopping answers at once, and restarting the kernel loses nothing. Start with `workbench.panels.lab`.
"""
