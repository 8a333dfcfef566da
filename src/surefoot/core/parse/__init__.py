"""The reply parser: what a model wrote -> calls, an answer, or a fault. Pure, and usable on its own (`reply.parse`)."""
