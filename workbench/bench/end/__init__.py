"""From a file to predictions in whole processes, as a user starts them: seconds by stage and peak memory."""
