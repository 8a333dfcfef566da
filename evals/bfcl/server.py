"""`python -m evals.bfcl.server [--port N] [--threads N]`: the embedded model behind llama.cpp's server.

Run it where surefoot[local] is installed, after `surefoot model pull`.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from typing import Any

from surefoot.models.files import weights_file

CONTEXT_TOKENS = 16_384


def main() -> None:
    """Serve at 127.0.0.1 until somebody ends it."""
    options = argparse.ArgumentParser(prog="python -m evals.bfcl.server", description=__doc__)
    options.add_argument("--port", type=int, default=8080)
    options.add_argument("--threads", type=int, default=2)
    chosen = options.parse_args()
    library: Any = importlib.import_module("xllamacpp")  # Any: it ships no types
    params = library.CommonParams()
    params.model.path = str(weights_file())
    params.hostnames, params.port = ["127.0.0.1"], chosen.port
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = chosen.threads
    params.n_parallel, params.n_ctx = 1, CONTEXT_TOKENS
    params.use_jinja, params.ui, params.fit_params = True, False, False
    server = library.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    signal.pause()


if __name__ == "__main__":
    main()
