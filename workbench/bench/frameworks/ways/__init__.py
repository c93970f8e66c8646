"""Ways to train in each framework, a file a framework; see `workbench.bench.frameworks`."""
