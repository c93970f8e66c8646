"""Who trains to a held-out quality, one library or way a file; each file registers what `contract.Contender` says."""
