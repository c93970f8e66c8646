"""The optimizers of the file `rules.toml` are registered: the formulas of each, and the defaults of its options."""

import tomllib
from pathlib import Path

from workbench.optimizers.contract import declare, register

for _name, _rule in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items():
    register(declare(_name, **_rule))
