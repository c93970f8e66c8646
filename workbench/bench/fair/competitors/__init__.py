"""Candidates of `bench fair`, one a file: the project's trainings and independent ones at equal work."""
