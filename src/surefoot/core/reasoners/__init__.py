"""Reasoners: who speaks next, what they see, when it is over."""
