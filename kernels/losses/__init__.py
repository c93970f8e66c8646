"""Loss and its gradient with respect to the scores, in one pass."""
