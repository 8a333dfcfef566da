"""Tools that are not the developer's own: those that nobody has declared, and those that look like another.

Source: spec/guard.md, section 4.4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from surefoot.core.gate.asked import Asked, Word
from surefoot.core.gate.effects import bare_name, guess
from surefoot.core.gate.lookalike import is_near, skeleton
from surefoot.core.gate.question import in_full
from surefoot.core.pins import pin_of
from surefoot.types.guard import GuardConfig
from surefoot.types.tools import ToolSpec


def tool(call: Asked) -> Sequence[Word]:
    """A tool that looks like one of another server; of every call of it a person is asked, a read or not."""
    why = call.known.doubted.get(call.spec.name)
    if why is None:
        return ()
    said = "another tool has almost the same name; say which one is meant, or use a tool that cannot be mistaken"
    return (Word("tool", "ask", said, why),)


def foreign(call: Asked) -> Sequence[Word]:
    """A call of a foreign tool that nobody has declared and that may change something, until one was approved.

    Its values may all be the user's own: what the server does with them is known by nobody here. A person's yes to a
    call accepts that very tool, by its pin, for the run; a yes to delete something accepts nothing.
    """
    spec = call.spec
    if not spec.is_foreign or spec.declared or not call.aim.is_effectful or pin_of(spec) in call.known.accepted:
        return ()
    said = "nobody has declared what this foreign tool does; use a tool of the house, or ask the user"
    where = f"server {in_full(spec.server)}" if spec.server else "a foreign server"
    return (Word("foreign", "ask", said, f"nobody has declared what the tool {in_full(spec.name)} of {where} does"),)


def accepted_by(config: GuardConfig, spec: ToolSpec) -> str:
    """The pin of the foreign tool that a person accepts with a yes to a call of it; "" where there is none."""
    if not spec.is_foreign or spec.declared or guess(spec, config.guess).effect == "delete":
        return ""
    return pin_of(spec)


def lookalikes(tools: Sequence[ToolSpec]) -> tuple[dict[str, str], dict[str, str]]:
    """The foreign tools to be hidden, and those to be asked about, by name with the reason in words. Pure.

    One that looks like the developer's own is hidden; two of different servers are both asked about. Names are compared
    with and without the server before them, by skeleton and by one edit. Tools of one server are not compared: it is
    one party, which can put behind either name what it likes, so that a likeness gains it nothing, and honest servers
    have `get_item` beside `get_items`. A tool that a person has declared was looked at, and is neither hidden nor asked
    about.
    """
    groups: defaultdict[str, dict[str, ToolSpec]] = defaultdict(dict)
    for spec in tools:
        for name in _names(spec):
            for key in _within_one_edit(skeleton(name)):
                groups[key][spec.name] = spec
    hidden: dict[str, str] = {}
    asked: dict[str, str] = {}
    for group in groups.values():
        own = [spec for spec in group.values() if not spec.is_foreign]
        served = [spec for spec in group.values() if spec.is_foreign]
        for spec in served:
            if spec.declared or spec.name in hidden:
                continue
            if near := _near(spec, own):
                hidden[spec.name] = f"it looks like the developer's own tool {in_full(near)}"
            elif spec.name not in asked and (near := _near(spec, served)):
                asked[spec.name] = f"the tool {in_full(spec.name)} looks like {in_full(near)} of another server"
    return hidden, {name: why for name, why in asked.items() if name not in hidden}


def _names(spec: ToolSpec) -> set[str]:
    return {spec.name, bare_name(spec)}


def _near(spec: ToolSpec, others: Sequence[ToolSpec]) -> str:
    """The name of the first of them that it can be mistaken for, and that is of another party; "" for none."""
    parties = (one for one in others if not one.is_foreign or one.server != spec.server)
    return next((one.name for one in parties if _are_near(one, spec)), "")


def _are_near(one: ToolSpec, other: ToolSpec) -> bool:
    return any(is_near(a, b) for a in _names(one) for b in _names(other))


def _within_one_edit(text: str) -> set[str]:
    """Keys of which two texts share one if they differ by at most one edit: the text, and it without each letter."""
    return {text, *(text[:at] + text[at + 1 :] for at in range(len(text)))}
