"""Questions that configurations ask of their values: is it a number that can be meant?"""

from __future__ import annotations

import sys
from typing import TypeGuard


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number that a float can hold; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_whole(value: object, least: int) -> TypeGuard[int]:
    """Whether it is a whole number from `least` on that a float can hold; true and false are none."""
    return isinstance(value, int) and is_number(value) and value >= least


def is_share(value: object) -> TypeGuard[float]:
    """Whether it is a number from 0 to 1."""
    return is_number(value) and 0 <= value <= 1
