"""Update rules: one formula per rule, from which the reference, CPU vector code and CUDA code are made."""
