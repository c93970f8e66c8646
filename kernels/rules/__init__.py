"""Update rules: one formula a rule, made into the reference, vector code for the CPU and CUDA code."""
