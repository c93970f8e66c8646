#!/usr/bin/env bash
# Keras 3.15.1 on TensorFlow 2.21.0 clips the gradient of an Embedding before it adds up the rows of repeated ids.
#
# The gradient of an Embedding is IndexedSlices with a row for each id of the batch, repeated ids included. Clipping reads
# these rows as they are, and they are added up afterwards. So SGD(1.0, global_clipnorm=0.5) takes a step that is longer
# than 0.5, or shorter than an unclipped one. The same model as one-hot rows @ weights is clipped as documented.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check keras==3.15.1 tensorflow-cpu==2.21.0
export KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 TF_ENABLE_ONEDNN_OPTS=0 CUDA_VISIBLE_DEVICES=
cat >"$folder/show.py" <<'PY'
import sys

import keras
import numpy as np
import tensorflow as tf

print("Keras", keras.__version__, "TensorFlow", tf.__version__)


def step(ids, weight_of_output, as_embedding, **clip):
    """Return the change [4, 1] of the weights in one SGD step of rate 1 on sum(weight_of_output * table[ids])."""
    table = keras.Variable(np.zeros((4, 1), "float32"))
    with tf.GradientTape() as tape:
        rows = keras.ops.take(table, ids, axis=0) if as_embedding else keras.ops.one_hot(ids, 4) @ table
        loss = keras.ops.sum(np.float32(weight_of_output)[:, None] * rows)
    keras.optimizers.SGD(1.0, **clip).apply(tape.gradient(loss, [table.value]), [table])
    return table.numpy()


cases = {
    "no id twice": ([0, 1, 2, 3], [1, 1, 1, 1]),
    "one id 4 times": ([0, 0, 0, 0], [1, 1, 1, 1]),
    "one id twice, gradients 1 and -0.9": ([0, 0], [1, -0.9]),
}
seen = {}
for name, (ids, outputs) in cases.items():
    for option in ("global_clipnorm", "clipnorm", "clipvalue"):
        sparse, dense = (step(np.array(ids), outputs, way, **{option: 0.5}) for way in (True, False))
        seen[name, option] = lengths = [round(float(np.linalg.norm(change)), 3) for change in (sparse, dense)]
        print(f"{name}, {option}=0.5: length of the step {lengths[0]}; of the same model with one-hot rows {lengths[1]}")

expected = {}
for option in ("global_clipnorm", "clipnorm", "clipvalue"):
    expected["no id twice", option] = [1.0, 1.0] if option == "clipvalue" else [0.5, 0.5]
    expected["one id 4 times", option] = [2.0, 0.5] if option == "clipvalue" else [1.0, 0.5]
    expected["one id twice, gradients 1 and -0.9", option] = [0.0, 0.1] if option == "clipvalue" else [0.037, 0.1]
changed = [key for key in expected if expected[key] != seen[key]]
print("CHANGED:" if changed else "As described: repeated ids are clipped before they are added up.", *changed)
sys.exit(bool(changed))
PY
"$folder/venv/bin/python" "$folder/show.py" 2>"$folder/log" || { status=$?; tail -5 "$folder/log" >&2; exit $status; }
