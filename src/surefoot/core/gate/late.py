"""Regular expressions that are compiled when they are first used, so that an agent without a guard pays for none."""

from __future__ import annotations

import re
from functools import cached_property


class Late:
    """A regular expression with the methods of a compiled one."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._pattern = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern, self._flags)

    @cached_property
    def search(self):  # noqa: ANN201  # as the compiled one's, with all its forms
        """`re.Pattern.search`."""
        return self._compiled.search

    @cached_property
    def match(self):  # noqa: ANN201  # as above
        """`re.Pattern.match`."""
        return self._compiled.match

    @cached_property
    def fullmatch(self):  # noqa: ANN201  # as above
        """`re.Pattern.fullmatch`."""
        return self._compiled.fullmatch

    @cached_property
    def finditer(self):  # noqa: ANN201  # as above
        """`re.Pattern.finditer`."""
        return self._compiled.finditer

    @cached_property
    def findall(self):  # noqa: ANN201  # as above
        """`re.Pattern.findall`."""
        return self._compiled.findall

    @cached_property
    def sub(self):  # noqa: ANN201  # as above
        """`re.Pattern.sub`."""
        return self._compiled.sub
