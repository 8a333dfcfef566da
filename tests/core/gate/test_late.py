"""What an agent without a guard does not pay for: no word is read, no expression compiled."""

import subprocess
import sys

from surefoot.core.text.words import late

_SHOWN = """
import sys, surefoot.core.loop.fold, surefoot.core.loop.moves
from surefoot.core.text import values, words
print(
    [one for one in ("intent", "forbids") if "surefoot.core.gate." + one in sys.modules],
    words.table.cache_info().currsize,
    [name for name, one in vars(values).items() if isinstance(one, words.Late) and "search" in vars(one)],
)
"""


def test_the_loop_does_not_load_the_reading_of_words() -> None:
    told = subprocess.run([sys.executable, "-c", _SHOWN], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "[] 0 []"


def test_a_late_expression_is_an_expression() -> None:
    one = late(r"b(\d)")
    found = (one.search("ab1"), one.fullmatch("b1 "), one.match("ab1"), one.match("ab1", 1))
    assert [m and m[1] for m in found] == ["1", None, None, "1"]
    assert (one.findall("b1 b2"), one.sub("x", "b1")) == (["1", "2"], "x")
    assert [m.start() for m in one.finditer("b1 b2")] == [0, 3]
