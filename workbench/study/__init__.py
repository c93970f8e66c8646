"""A study: what a person chooses, and the sweep that answers it. Panel, notebook and command line choose alike.

`choices` are derived from the table of settings; some follow the data set (`suited`); files are looked at when they are
named (`files`); `specs` makes the sweep, and `command_text` the command that does the same.
"""
