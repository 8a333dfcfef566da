"""What an agent without a guard does not pay for: the reading of words is not loaded, and no expression is compiled."""

import subprocess
import sys

from surefoot.core.gate.late import Late

_SHOWN = (
    "import sys, surefoot.core.fold, surefoot.core.moves, surefoot.core.gate.values as v;"
    "print([m for m in ('words', 'forbids', 'entities', 'cues') if 'surefoot.core.gate.' + m in sys.modules],"
    "[name for name, one in vars(v).items() if isinstance(one, v.Late) and len(vars(one)) > 2])"
)


def test_the_loop_does_not_load_the_reading_of_words() -> None:
    told = subprocess.run([sys.executable, "-c", _SHOWN], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "[] []"


def test_a_late_expression_is_an_expression() -> None:
    late = Late(r"b(\d)")
    found = late.search("ab1")
    assert found is not None
    assert (found[1], late.fullmatch("b1") is None, late.match("ab1"), late.match("ab1", 1) is None) == (
        "1",
        False,
        None,
        False,
    )
    assert (late.findall("b1 b2"), late.sub("x", "b1"), [m.start() for m in late.finditer("b1 b2")]) == (
        ["1", "2"],
        "x",
        [0, 3],
    )
