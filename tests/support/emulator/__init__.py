"""A CUDA device on the host: runs the kernels' `.cu` files, compiled by g++, with a block's threads as fibers."""
