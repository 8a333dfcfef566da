"""The main job on the embedded model: a task of the demo, and one of `make test-scale`, by the command of a user."""

import subprocess
import sys
from pathlib import Path

import pytest

from surefoot.models.files import QWEN_CODER, known_models

ROOT = Path(__file__).parent.parent


def has_weights() -> bool:
    return any(model.name == QWEN_CODER.name and model.present for model in known_models())


TRIES = 3
"""The model samples, and is right about nine times of ten; three wrong answers in a row mean that something broke."""


@pytest.mark.real_model
@pytest.mark.skipif(not has_weights(), reason="the embedded model is not here; `surefoot model pull` fetches it")
@pytest.mark.parametrize("task", ["1", pytest.param("5", marks=pytest.mark.scale)])
def test_a_task_of_the_demo_comes_out_right(task: str) -> None:
    told = ""
    for _ in range(TRIES):
        done = subprocess.run(
            [sys.executable, ROOT / "examples" / "demo.py", task],
            capture_output=True,
            text=True,
            check=False,
            timeout=1200,
        )
        told += done.stdout + done.stderr
        if "✓ right" in done.stdout:
            assert done.returncode == 0
            return
    pytest.fail(told)
