"""The hands: the loop, and what makes each move in the world."""
