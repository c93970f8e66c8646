"""Every public door tried with every invalid array: the cases, and `__main__`, which tries them on its own."""
