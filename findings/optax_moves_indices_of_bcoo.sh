#!/usr/bin/env bash
# Optax 0.2.8 and JAX 0.10.2: a step on parameters in BCOO form moves the entries to other places. The indices are a leaf
# of the tree, jax.experimental.sparse.grad returns a gradient with the same indices, and the optimizer takes them for a
# gradient: sgd subtracts a tenth of each index, adam 0.1 from each. No error, no warning.
#
# The shape stays, the indices remain whole numbers (they are rounded towards 0), so the model just gets worse. The way
# around: optimize matrix.data and rebuild the matrix in the loss. equinox.filter_grad leaves indices alone.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check jax==0.10.2 optax==0.2.8
cat >"$folder/show.py" <<'PY'
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import sparse

print("JAX", jax.__version__, "Optax", optax.__version__)
matrix = sparse.BCOO.fromdense(jnp.array([[0, 1.0, 0, 2], [0, 0, 3, 0], [4, 0, 0, 5]]))
rows = jnp.array([1.0, 2, 3, 4])
gradient = sparse.grad(lambda matrix: jnp.sum((matrix @ rows) ** 2))(matrix)
assert (gradient.indices == matrix.indices).all()
print("before      ", matrix.indices.tolist())
seen = {}
for name, optimizer in {"sgd": optax.sgd(0.1), "adam": optax.adam(0.1)}.items():
    updates, _ = optimizer.update(gradient, optimizer.init(matrix), matrix)
    stepped = optax.apply_updates(matrix, updates)
    right = matrix.data + updates.data
    seen[name] = stepped.indices.tolist()
    print(f"after {name:<6}", seen[name], "values as they should be:", bool(np.allclose(stepped.data, right)))
    print(np.asarray(stepped.todense()))
moved = [[0, 0], [0, 2], [0, 1], [1, 0], [1, 2]]
is_so = seen == {"sgd": moved, "adam": moved}
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
