"""What a model sees: the state as messages, in the call mode of the moment.

Messages are a view of the turns, made anew whenever the mode changes, so that native messages and `Observation:` texts
never stand in one request. A settled turn is rendered once for each mode and kept, and each message keeps its encoded
form; so a request costs what is new in it. For any history, each call id is answered exactly once, in call order. How
much of the turns is shown (`fit_turns`) follows from the state alone, and the fold keeps it with each reply; so a run
that is taken up, replayed or forked shows the same. While the request fits, what was shown is only added to. Once it
does not, the oldest turns are folded, by the first of these steps that is enough; what is folded stays so:

    results of all but the last few turns, oldest first, until the request is well below the window
    results of the last few but the newest, as few as needed
    long arguments of all but the newest
    the oldest turns are not shown any more
    results, then arguments, of the newest

Source: spec/react.md, sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from surefoot.core.parse.frames import plain
from surefoot.core.parse.marks import stop_sequences
from surefoot.core.state.lookup import History
from surefoot.core.state.roles import ACTOR, SOLO, TAGGED, THINKER, prompt_name, window_of
from surefoot.core.state.state import State, subset
from surefoot.core.state.turn import Rendered
from surefoot.core.state.window import READ_RESULT, Fit, catalogue_tokens, marks, message_tokens, text_tokens
from surefoot.core.text import json_text
from surefoot.core.view.observations import Form, ask_for, form_in
from surefoot.core.view.shape import IN_WORDS, REPEATS, required_only, step_schema, told_shape, with_finish
from surefoot.core.view.step import guidance, is_thought, tools_now, without_pager
from surefoot.core.view.turns import (
    fetched,
    files_shown,
    said_before,
    said_until,
    split_template,
    turn_messages,
    user_words,
)
from surefoot.types.knowledge import ROOT
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.moves import Think
from surefoot.types.outcomes import Deny
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue

Show = Callable[[int, int], Rendered]
"""What a role is shown of a turn: of its place from 0 on, and a level as `Fit.level` has it."""

KEPT_WHOLE = 3  # the last turns, which are folded only when nothing else helps
_RESULTS, _ARGUMENTS, _TURNS = range(3)


def fit_turns(state: State, role: str, show: Show, pinned: int, droppable: int) -> Fit:
    """What the role is shown next. `pinned`: tokens of all but the turns; `droppable`: turns that may be left out."""
    was = state.speakers[role].fit
    form = form_in(state, state.speakers[role].mode)
    window = window_of(state, role)
    if window is None:
        return was
    low, high = marks(window, was.stretch)
    load = _Load(state, role, show, was if was.form == form else replace(was, form=form, counted=0, turns=0))
    if pinned + load.turns > high:
        steps = state.steps
        for what, until, target in (
            (_RESULTS, steps - KEPT_WHOLE, low),
            (_RESULTS, steps - 1, high),
            (_ARGUMENTS, steps - 1, low),
            (_TURNS, droppable, low),
            (_RESULTS, steps, high),
            (_ARGUMENTS, steps, high),
        ):
            load.shrink(what, until, target - pinned)
            if pinned + load.turns <= high:
                break
    folded, stripped, dropped = load.until
    return Fit(form, state.steps, load.turns, pinned + load.turns, folded, stripped, dropped, was.stretch, was.limit)


class _Load:
    """The tokens of the turns as they are shown, and how far each kind of folding has come."""

    def __init__(self, state: State, role: str, show: Show, fit: Fit) -> None:
        self._state, self._role = state, role
        self._show = show
        self.until = [max(fit.folded, fit.dropped), max(fit.stripped, fit.dropped), fit.dropped]
        new = range(fit.counted, state.steps)
        self.turns = fit.turns + sum(self._tokens(at, _TURNS + 1 if at < fit.dropped else fit.level(at)) for at in new)

    def shrink(self, what: int, until: int, target: int) -> None:
        """Fold one turn after the other, oldest first, up to that turn or until so many tokens are left."""
        while self.turns > target and self.until[what] < until:
            at = self.until[what]
            self.until[what] += 1
            self.turns += self._tokens(at, what + 1) - self._tokens(at, what)

    def _tokens(self, at: int, level: int) -> int:
        if level > _TURNS:  # what it said of conventions still holds, and what the user said
            turn, step = self._state.turns[at], self._state.running_step
            told = turn.guidance if step is not None and turn.step_id == step.step_id else ""
            said = said_before(self._state, self._role, at + 1) if at >= self._state.begun else ()
            return text_tokens(turn.conventions) + text_tokens(told) + sum(map(message_tokens, said))
        return self._show(at, level).tokens


_NO_TOOLS = Catalogue()

ANSWER_SCHEMA = "answer_schema"
"""Trait: whether native replies are held to the schema of an answer. "beside_tools": yes, and they may call tools all
the same; "no": it was refused; else only where no tool is on offer, since on most servers one bars the other."""

LOOK_FIRST = "early_answers"  # trait: "yes" says that the model answers before it has looked, if it may

REQUIRED_ONLY = "optional_arguments"
"""Trait: "no" says that the model fills in whatever it may, and is better shown what is required or asked for."""

_LINE_TOKENS = 20  # room for the line about turns that are not shown


def own_turns(state: State) -> Show:
    """What one who speaks alone is shown of the turns."""
    done, form = state.done, form_of(state, SOLO)

    def show(at: int, level: int) -> Rendered:
        turn = state.turn if state.turn is not None and at == done.length else done[at]
        return turn_messages(state, turn, form, level)

    return show


def composed(
    state: State, think: Think, show: Show, fit: Fit, schema: Mapping[str, object] | None = None, **sent: Any
) -> ModelRequest:
    """A request out of what a role is shown of the turns: before them the head, behind them what is asked for.

    `schema` is what a reply in schema mode is held to, unless that is a step with the tools that are offered now;
    `sent` are the fields of the request that do not follow from the state.
    """
    speaker, steps = state.speakers[think.role], state.steps
    mode = speaker.mode
    form = form_in(state, mode)
    offered = offered_now(state, think, fit)
    system, first = head(state, think.role)
    messages = [first]
    if state.conventions or state.hydrated is not None:
        messages = [*_before_the_task(state, think.role), first]
    if fit.dropped:
        messages += _in_place_of(state, think.role, fit.dropped)
    folded = max(fit.dropped, fit.folded)
    for at in range(fit.dropped, folded):
        messages += show(at, fit.level(at)).messages
    if folded < steps:
        for part in _settled_messages(state, f"until:{think.role}:{form}:{folded}", show, folded).parts:
            messages += part
        messages += show(steps - 1, 0).messages  # the newest may still be shown differently
    messages += said_before(state, think.role, steps + 1)
    if (state.plan or state.gate) and (told := guidance(state)):
        messages.append(ModelMessage("user", told))
    if think.want != "any" and (asked := ask_for(state, think.want, form)):
        messages.append(ModelMessage("user", asked))
    sent["traits"] = speaker.traits
    if mode == "text":
        return ModelRequest(system, tuple(messages), mode, stop=_STOPS[form], **sent)
    bare = mode == "native" and think.want == "reasoning"
    if mode == "native":
        schema = None
        if state.config.output_schema is not None:
            schema, offered = held_to(state, think, offered)
    elif not schema:
        error = state.turn.parsed.error if state.turn else None
        looks_first = speaker.traits.get(LOOK_FIRST) == "yes" and not speaker.replies
        # left alone, a small model gives an answer that says nothing again
        said_nothing = error is not None and error.kind == "empty_final"
        schema = step_schema(
            offered,
            answer=not looks_first or not any(tool.effect == "read" for tool in offered.tools),
            known=speaker.traits.get(REPEATS) == "yes" and state.turn is not None and bool(state.turn.calls),
            least_answer=IN_WORDS if said_nothing else 1,
            deliverable=must_deliver(state, think),
            output=None if think.role == ACTOR and think.want != "answer" else state.output_schema,
        )
    return ModelRequest(system, tuple(messages), mode, tools=offered, schema=schema, bare=bare, **sent)


def _settled_messages(state: State, name: str, show: Show, start: int) -> History[ModelMessage]:
    """The messages of whole turns from `start` on but the newest, kept with that, so that only what is new is added."""
    newest = at = state.steps - 1
    turn = last = state.turn or state.done[newest]
    while (kept := turn.take(name)) is None and at > start:
        at -= 1
        turn = state.done[at]
    made = kept.messages if kept is not None else ()
    made = made if isinstance(made, History) else History(made)
    for place in range(at, newest):
        made = made.plus(*show(place, 0).messages)
    last.keep(name, made)
    return made


def fit_for(state: State, think: Think, show: Show, droppable: int) -> Fit:
    """How much of the turns the role is shown in its next request. `droppable`: turns that may be left out."""
    role = think.role
    system, first = head(state, role)
    form = form_of(state, role)
    said = said_before(state, role, state.steps + 1)
    before = sum(map(message_tokens, (*_before_the_task(state, role), first, *said)))
    pinned = before + text_tokens(system) + text_tokens(ask_for(state, think.want, form)) + _LINE_TOKENS
    pinned += text_tokens(guidance(state))
    if state.speakers[role].mode == "native" and role != THINKER:
        pinned += catalogue_tokens(held_to(state, think, tools_now(state))[1])
    return fit_turns(state, role, show, pinned, droppable)


def _in_place_of(state: State, role: str, dropped: int) -> list[ModelMessage]:
    """What stands in place of the oldest turns: the conventions told with them, and what the running step was told."""
    name = f"dropped:{role}:{dropped}"
    kept = state.heads.get(name)
    if kept is None:
        told = [turn.conventions for turn in state.done[:dropped] if turn.conventions and turn.role == role]
        again = (
            f'; {READ_RESULT}(call_id="N", start=0) reads step N again'
            if role != THINKER and state.offered.get(READ_RESULT)
            else ""
        )
        text = "\n\n".join((f"[{dropped} earlier steps are not shown{again}]", *told))
        kept = state.heads[name] = ("", ModelMessage("user", text))
    step = state.running_step
    gone = state.turns[:dropped] if step is not None else ()
    told = [turn.guidance for turn in gone if step is not None and turn.step_id == step.step_id]
    return [kept[1], *said_until(state, role, dropped), *(ModelMessage("user", text) for text in told if text)]


_STOPS: Mapping[Form, tuple[str, ...]] = {"text": stop_sequences(), "tags": ("<function_call_result",)}


def _before_the_task(state: State, role: str) -> tuple[ModelMessage, ...]:
    """What was fetched of the task's references, as its own message, so that the user's words stand last."""
    known = [one.message for one in state.conventions if one.directory == ROOT and one.message]
    before = tuple(ModelMessage("user", plain(message)) for message in known)
    if state.hydrated is None and not state.earlier:
        return before
    name = f"hydrated:{role}"
    kept = state.heads.get(name)
    if kept is None and (text := fetched(state, role, state.exchanges[0] if state.task else None)):
        kept = state.heads[name] = ("", ModelMessage("user", text))
    return (*before, kept[1]) if kept is not None else before


def form_of(state: State, role: str) -> Form:
    """The form in which a role writes its steps now."""
    return form_in(state, state.speakers[role].mode)


def held_to(state: State, think: Think, offered: Catalogue) -> tuple[Mapping[str, object] | None, Catalogue]:
    """How a native reply is held to the shape of an answer: by the wire where it can, else by a tool that takes it.

    Gives the schema for the wire, and the tools. Replies in tags have their form in words alone.
    """
    schema = state.output_schema
    if schema is None or state.reasoner in TAGGED or is_thought(state, think.want):
        return None, offered
    traits = state.speakers[think.role].traits
    may_hold = traits.get(ANSWER_SCHEMA, "no" if offered.tools else "") != "no"
    if may_hold and traits.get("json_schema") == "yes" and schema.get("type") == "object":
        return schema, offered
    return None, offered if think.want == "reasoning" else with_finish(offered, schema)


def must_deliver(state: State, think: Think) -> bool:
    """Whether what this role gives as its answer has to be a deliverable."""
    if state.reasoner not in TAGGED or state.config.deliverable == "optional":
        return False
    if is_thought(state, think.want):
        return False
    return think.role == SOLO or think.want == "answer"


_LOOKED_BACK = 20
"""Turns that tell which tools a small model goes round with; a late step looks at no more than an early one."""


def offered_now(state: State, think: Think, fit: Fit) -> Catalogue:
    """The tools that may be called in this step: none when words are asked for, and never any for a Thinker.

    The pager is among them once something was cut or folded.

    In schema mode a tool whose calls were answered from the journal is left out until something new was called: a small
    model left alone asks for one, or two in turn, until the limit. One with an effect that a reply has asked for word
    for word as before stays out until another effect was made, but not for ever: a read makes it no less done.
    """
    if think.want != "any" or think.role == THINKER:
        return _NO_TOOLS
    offered = tools_now(state)
    if not (state.has_cut_result or fit.folded):
        offered = without_pager(offered)
    if state.speakers[think.role].mode != "schema":
        return offered
    offered = fitting(state, think.role, offered)
    # What was refused, or answered with "already done", may be meant once more, so its tool stays; not when the whole
    # reply stood there before, word for word: then a small model goes round, and would do it again for ever.
    names: set[str] = set()
    has_read = False
    for turn in islice(reversed(state.turns), _LOOKED_BACK):
        calls = [call for call in turn.calls if call.has_effect or not has_read]
        if turn.role != think.role or (turn.calls and not calls):
            continue
        again = [call for call in calls if call.is_told_once or isinstance(call.decision, Deny)]
        earlier = (one.message.content for one in state.turns if one.step < turn.step and one.role == turn.role)
        is_known = all(call.known or call in again for call in turn.calls)
        if calls and is_known and (not again or turn.message.content in earlier):
            names.update(call.name for call in calls)
        elif not calls or any(call.has_effect for call in calls):
            break
        else:
            has_read = True
    repeated = frozenset(names)
    return subset(offered, tuple(name for name in offered.names if name not in repeated)) if repeated else offered


def fitting(state: State, role: str, offered: Catalogue) -> Catalogue:
    """The declarations as this model is best shown them."""
    speaker = state.speakers[role]
    if speaker.mode != "schema" or speaker.traits.get(REQUIRED_ONLY) != "no":
        return offered
    return required_only(offered, "\n".join(one.task.text for one in reversed(state.exchanges)))


def head(state: State, role: str) -> tuple[str, ModelMessage]:
    """The system text and the first user message of a role, made once for each mode."""
    mode, step = state.speakers[role].mode, state.running_step
    key = f"{role}:{mode}" if step is None else f"{role}:{mode}:{step.step_id}"
    kept = state.heads.get(key)
    if kept is not None:
        return kept
    task = state.exchanges[0].task if state.task is not None else Task("")
    tools = without_pager(tools_now(state))
    tools = fitting(state, role, tools) if mode == "schema" else tools
    if role == THINKER:
        described = tools.derived("abilities", abilities)
    else:
        native = mode == "native"
        described = tools.derived("names_text", names) if native else tools.derived("declarations", declarations)
    template = state.prompts[prompt_name(role, mode)]
    system, user = split_template(template, tools=described, task=user_words(state, role, task))
    if state.config.output_schema is not None and state.output_schema is not None and role != THINKER:
        where = "The answer" if state.config.deliverable == "optional" else "<final_output>"
        system += f"\n\n{told_shape(state.output_schema, where)}"
    if state.instructions:
        system = f"{state.instructions}\n\n{system}".strip()
    made = state.heads[key] = (
        system,
        ModelMessage("user", user, files=files_shown(state, role, task) if task.attachments else ()),
    )
    return made


def abilities(tools: Catalogue) -> str:
    """What can be done with the tools, for one who does not call them: no form of a call."""
    lines = (f"- {tool.name}: {' '.join(tool.description.split()) or 'no description'}" for tool in tools.tools)
    return "\n".join(lines) or "(no tools)"


def names(tools: Catalogue) -> str:
    """The names alone, where the declarations travel natively."""
    return ", ".join(tools.names) or "none"


def declarations(tools: Catalogue) -> str:
    """One JSON object a line, byte-stable, in the order of the catalogue."""
    lines = (json_text({"name": t.name, "description": t.description, "parameters": t.parameters}) for t in tools.tools)
    return "\n".join(lines) or "(no tools)"
