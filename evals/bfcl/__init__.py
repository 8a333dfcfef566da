"""BFCL with one model under several runtimes: surefoot, pydantic-ai, smolagents, and the bare server.

Data and checkers are those of the package `bfcl-eval` (Patil et al., The Berkeley Function Calling Leaderboard). It and
the other runtimes live in an environment of their own, since `bfcl-eval` wants some thirty clients of models:

    python -m venv ENV
    ENV/bin/pip install --no-deps bfcl-eval
    ENV/bin/pip install tree-sitter tree-sitter-java tree-sitter-javascript mpmath
    ENV/bin/pip install 'pydantic-ai-slim[openai]' smolagents
    ENV/bin/pip install aiohttp docstring-parser jsonschema-rs orjson pydantic rapidfuzz
    python -m evals.bfcl.server --port 8080  # in the environment of the checkout
    PYTHONPATH=src:. ENV/bin/python -m evals.bfcl http://127.0.0.1:8080 RESULTS.jsonl --seed 1 --each 15
    PYTHONPATH=src:. ENV/bin/python -m evals.bfcl http://127.0.0.1:8080 RESULTS.jsonl --categories multi_turn --each 6

What counts are the calls that tools really got in the whole run, each answered with the word "done". In `multi_turn`
(BFCL's `multi_turn_base`) the tools are the package's simulated classes, and its checker looks at them after each turn.
"""
