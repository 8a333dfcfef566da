"""Tools: Python functions that a model can call, and the ones that surefoot brings."""
