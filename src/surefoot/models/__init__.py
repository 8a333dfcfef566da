"""Models: one module a wire, and wrappers of the same shape around them."""
