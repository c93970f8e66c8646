#!/usr/bin/env bash
# Treelite 4.8.1: a LightGBM 4.7.0 model that was trained with zero_as_missing=True predicts other numbers in Treelite, from
# dense rows, from CSR and from rows with NaN for 0. The model file says so in each node; it is loaded without a warning.
#
# A model without this option is right in all three forms. The documentation does not name the option; issue 376 of
# dmlc/treelite, open since March 2022, does.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check treelite==4.8.1 lightgbm==4.7.0 scipy==1.17.1 numpy==2.3.5
cat >"$folder/show.py" <<'PY'
import sys
import tempfile

import lightgbm
import numpy as np
import scipy.sparse as sp
import treelite

print("Treelite", treelite.__version__, "LightGBM", lightgbm.__version__)
generator = np.random.default_rng(0)
rows = np.where(generator.random((2000, 4)) < 0.5, generator.normal(1, 1, (2000, 4)), 0.0)
target = np.where(rows[:, 0] == 0, 3, rows[:, 0]) + generator.normal(0, 0.1, 2000)
forms = {"dense": rows, "CSR": sp.csr_matrix(rows), "NaN for 0": np.where(rows == 0, np.nan, rows)}
seen = {}
for option in (False, True):
    settings = {"objective": "l2", "verbose": -1, "num_threads": 1, "zero_as_missing": option}
    model = lightgbm.train(settings, lightgbm.Dataset(rows, target), 20)
    with tempfile.NamedTemporaryFile(suffix=".txt") as file:
        model.save_model(file.name)
        loaded = treelite.frontend.load_lightgbm_model(file.name)
    for name, form in forms.items():
        predictions = model.predict(form), treelite.gtil.predict(loaded, form)
        errors = [np.sqrt(np.mean((np.ravel(values) - target) ** 2)) for values in predictions]
        seen[option, name] = [round(float(error), 2) for error in errors]
        both = f"by LightGBM {errors[0]:.2f}, by Treelite {errors[1]:.2f}"
        print(f"zero_as_missing={option!s:<5} {name:<9} RMS error {both}")
is_so = all(ours == theirs < 0.25 for (option, _), (theirs, ours) in seen.items() if not option)
is_so &= all(theirs < 0.25 and ours > 1.5 for (option, _), (theirs, ours) in seen.items() if option)
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
