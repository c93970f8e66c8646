"""Candidates that train to a held-out quality, one library or way a file; each registers a `contract.Candidate`."""
