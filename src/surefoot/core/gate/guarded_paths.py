"""Files that somebody else runs or obeys later: whoever writes one acts beyond the run, so a person is asked.

The policy holds without the gate, too, and in every mode of it. It looks at `file_write` and at tools of servers, which
may write files as well. A tool of your own is your own word on what it may write.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from surefoot.core.gate.effects import guess
from surefoot.core.gate.forms import normal_text
from surefoot.core.gate.roles import leaves, name_of, role_of_name
from surefoot.core.state import Call, State
from surefoot.types.decisions import ALLOWED, Ask, Decision, Deny
from surefoot.types.tools import ToolSpec

_OURS = "file_write"
_LONGEST_PATH = 4096

_HISTORY = (".git", ".hg", ".svn", ".jj")
"""Folders that `file_write` never writes, so that nobody need be asked."""

GUARDED = (
    # run by a shell when it starts, or enters a folder
    *(".bash*", ".zsh*", ".zprofile", ".zlogin", ".zlogout", ".profile", ".login", ".logout", ".*shrc", ".inputrc"),
    *("config.fish", ".envrc", ".xprofile", ".xinitrc"),
    # run by version control and by the servers that build what is pushed
    *(*_HISTORY, ".gitconfig", ".husky", ".githooks", ".pre-commit-config.y*ml"),
    *(".github", ".gitea", ".forgejo", ".circleci", ".buildkite", ".woodpecker*", ".gitlab-ci.y*ml", ".travis.y*ml"),
    *(".drone.y*ml", "jenkinsfile", "azure-pipelines.y*ml", "bitbucket-pipelines.y*ml"),
    # run by tests, builds and every start of an interpreter
    *("conftest.py", "sitecustomize.py", "usercustomize.py", "makefile", "gnumakefile"),
    # obeyed by agents, this one among them
    *("agents.md", "agents.override.md", "claude.md", "surefoot.toml"),
)
"""Patterns for one name of a path, in lower case; a folder stands for all below it."""


def guarded_path(_state: State, call: Call) -> Decision:
    """A file that others run or obey is written with a person's approval alone."""
    spec = call.spec
    if spec is None or spec.effect == "read" or not (spec.is_foreign or spec.name == _OURS):
        return ALLOWED
    found = next((path for path in _paths(spec, call) if is_guarded(path)), None)
    if found is None or (not spec.declared and guess(spec, "all").effect == "read"):
        return ALLOWED
    if spec.name == _OURS and is_guarded(found, _HISTORY):
        return Deny("refused: folders of version control are not written by tools. Use another path.")
    return Ask(f"it writes {found[:200]!r}, which others run or obey later")


def is_guarded(path: str, patterns: Sequence[str] = GUARDED) -> bool:
    """Whether a part of a path has such a name, however it is spelt."""
    parts = (normal_text(part).rstrip(". ") for part in path.replace("\\", "/").split("/"))
    return any(fnmatchcase(part, pattern) for part in parts for pattern in patterns)


def _paths(spec: ToolSpec, call: Call) -> list[str]:
    """What may be a path among the arguments: no text that is written, and no page of the web."""
    return [
        value
        for path, value in leaves(call.arguments, spec)
        if isinstance(value, str)
        and len(value) <= _LONGEST_PATH
        and role_of_name(name_of(path)) != "content"
        and not value.lower().startswith(("http://", "https://"))
    ]
