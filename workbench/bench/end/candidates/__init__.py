"""Candidates of `bench end`, one library a file; each registers itself."""
