"""The name that a benchmark has for `evals/` of a checkout, `surefoot.evals.agentdojo:guard`; not in the wheel."""

from pathlib import Path

__path__ = [str(Path(__file__).parents[3] / "evals")]
