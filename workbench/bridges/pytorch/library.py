"""PyTorch, imported in this one place: the extra `peers` has it, `import workbench` does without."""

try:
    import torch
    from torch.utils.weak import WeakTensorKeyDictionary
except ImportError as error:
    raise ImportError(
        "workbench.bridges.pytorch needs PyTorch: pip install 'sparse-workbench[peers]', or for the CPU alone "
        "pip install torch --index-url <the index of CPU builds that PyTorch's own page of installation names>."
    ) from error

__all__ = ["WeakTensorKeyDictionary", "torch"]
