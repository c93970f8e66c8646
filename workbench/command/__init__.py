"""The command line: `cli` has one sub-command per public function; the other modules do what it says."""
