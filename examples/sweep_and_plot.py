"""Measure training steps over densities, print from which density on dense is faster, and save the chart.

python examples/sweep_and_plot.py [FILE]; without a file data is generated.
"""

import sys

import workbench as wb

data = wb.load(sys.argv[1]) if len(sys.argv) > 1 else wb.load("power_law", rows=4_000, features=2_000, density=0.5)

# Dense is always measured, too. Two rounds give a first answer; more rounds make it more certain.
result = wb.sweep(data, density=[0.01, 0.05, 0.2, 0.5], format="csr", update="lazy", rounds=2)

print(result.verdict)
print(result.break_evens)

for chart in ("time", "memory"):
    picture = result.folder / f"{chart}.png"
    result.plot(chart).figure.savefig(picture)
    print("chart:", picture)
