"""Which forms of a call are read under which dialect that a model was asked for: a matrix from the tests' own cases.

`python benchmarks/dialects.py`. A call stands behind a sentence, as models write it; what is all of a reply has a row
each. A cell counts the cases that become exactly their call.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # its helpers
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "core" / "parse"))
from test_parse_families import ONE_CALL
from test_parse_forms import ALONE, PYTHON, TOOLS, Calls
from tools_for_parsing import calls

from surefoot.core.parse.reply import parse
from surefoot.types.messages import NativeCall
from surefoot.types.tools import Catalogue

DIALECTS = ("auto", "native", "react", "tags")
LABELS = (("Action", "Action Input"), ("行动", "行动输入"))
WANTED: Calls = [("f", {"a": "x"})]
Case = tuple[str, Calls, Catalogue | tuple[()]]


def right(cases: Sequence[Case], dialect: str) -> str:
    """How many of the cases are read as what they are."""
    return f"{sum(calls(parse(text, tools, dialect=dialect)) == wanted for text, wanted, tools in cases)}/{len(cases)}"


def main() -> None:
    """Print the matrix."""
    rows: dict[str, list[Case]] = {name: [(f"Let me see. {text}", WANTED, ())] for name, text in ONE_CALL.items()}
    rows["ReAct labels"] = [(f'{label}: f\n{given}: {{"a": "x"}}', WANTED, ()) for label, given in LABELS]
    rows["Python, all of a reply"] = [(text, wanted, TOOLS) for text, wanted in PYTHON.items()]
    rows["JSON, all of a reply"] = [(text, wanted, TOOLS) for text, wanted in ALONE.items() if text not in PYTHON]
    print("| form | " + " | ".join(DIALECTS) + " |\n|---|" + "---:|" * len(DIALECTS))
    for name, cases in rows.items():
        print(f"| {name} | " + " | ".join(right(cases, dialect) for dialect in DIALECTS) + " |")
    native = NativeCall("1", "f", '{"a": "x"}')
    beside = (f"{int(calls(parse('', dialect=one, tool_calls=[native])) == WANTED)}/1" for one in DIALECTS)
    print("| native calls | " + " | ".join(beside) + " |")


if __name__ == "__main__":
    main()
