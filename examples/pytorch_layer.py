"""Train a linear layer in a plain PyTorch loop with SparseLinear and LazySGD, on rows that stay sparse.

python examples/pytorch_layer.py [FILE], with labels that are classes; without a file data is generated.
"""

import sys

import numpy as np
import torch

import workbench as wb
from workbench.bridges.pytorch import LazySGD, SparseLinear

if len(sys.argv) > 1:
    data = wb.load(sys.argv[1])
else:
    data = wb.load("power_law", rows=5_000, features=20_000, density=0.002, classes=3, seed=0)
X, y = data.x, torch.from_numpy(data.y)  # X is a SciPy csr array, y has the index of each row's class
print(data)

torch.manual_seed(0)
model = SparseLinear(X.shape[1], len(data.classes))
optimizer = LazySGD(model.parameters(), lr=0.5)  # changes only the weights of columns that occur in the batch
rng = np.random.default_rng(0)

for epoch in range(5):
    losses = []
    for rows in np.array_split(rng.permutation(X.shape[0]), max(1, X.shape[0] // 256)):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(X[rows]), y[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")

with torch.no_grad():
    print(f"accuracy on these rows: {(model(X).argmax(1) == y).float().mean():.3f}")
