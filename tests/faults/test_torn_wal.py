"""A damaged log is told, and nothing is done twice for it. `torn_wal.py` does the same for any number of copies."""

from pathlib import Path

import pytest
from torn_wal import torn


@pytest.mark.slow
def test_no_copy_with_a_damaged_log_lacks_records_in_silence(tmp_path: Path) -> None:
    found = torn(24, 5, tmp_path)
    assert (found.silent, found.again, found.stranded) == ([], [], [])
    assert found.whole >= 24 * 2, "the runs that had ended before are in the file itself"
    assert found.named, "the damage took records along"
