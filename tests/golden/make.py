"""Write the golden journal of this version: the newest one that there is, its events in the form of today.

`PYTHONPATH=src:tests python tests/golden/make.py tests/golden/VERSION.journal`, once for each release.
"""

import sys
from pathlib import Path

from surefoot.journal.codec import encode
from surefoot.types.events import VERSION
from test_golden import GOLDEN, events_of


def main() -> None:
    """One line a record: the version, a tab, the body; the catalogue is the first line."""
    lines: list[bytes] = []
    for event in events_of(GOLDEN[-1]):
        body, blob = encode(event)
        if blob is not None:
            lines.insert(0, b"tools\t" + blob[1])
        lines.append(b"%d\t%b" % (VERSION, body))
    Path(sys.argv[1]).write_bytes(b"\n".join(lines) + b"\n")


if __name__ == "__main__":
    main()
