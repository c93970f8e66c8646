"""The suite of advice: cases of data and model, each advised on and swept in full, one after the other."""
