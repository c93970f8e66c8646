"""`python -m benchmarks SUITE`: measure a suite, complete its records and write its page."""

from benchmarks.suites import bench
from workbench.command import exit_codes

if __name__ == "__main__":
    exit_codes.run(bench, "python -m benchmarks")
