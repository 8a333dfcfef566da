"""A call in the words of a reply that was to make its calls natively: what it decodes to, and where it stands.

Only tools that are offered count. A text is read as it stands, then as what may be a block of its own at its end: the
fence that closes it, and the lines from the first or last one that opens a call. What decodes nowhere may still look
like a call, by a name in the place where some form has it, or before a fence that holds the arguments alone.
Source: spec/react.md, sections 5, 6 and 13.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from typing import Literal

from surefoot.core.parse.calls import whole_value
from surefoot.core.parse.marks import DEFAULT_LABELS, label_pattern
from surefoot.core.parse.scan import FENCE, HeldText, fence_at, past_fence, skip_blanks
from surefoot.core.parse.stream import visible, without_leaked_tokens
from surefoot.core.parse.toolset import Offered, fold, offered_of
from surefoot.core.text.json import as_object
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.reply import Parsed, ReplyWarning
from surefoot.types.tools import Catalogue, ToolSpec

Read = Callable[..., Parsed]  # of a text, with its `dialect` by name
"""Reads a text in a dialect, with the tools and settings of the run."""

AMONG_WORDS = "it stands among other words"  # what is told of a call that other words stand around

_MOST_CHARS = 200_000  # characters of a block behind words that is still read as a call

_MOST_CHARS_OF_BROKEN = 50_000  # characters at the end of a text in which a call that cannot be read is looked for

_ACTIONS = r"(?:action|(?:tool|function)(?:[ _]?name)?|(?:调用)?工具)"
_INPUTS = r"(?:(?:action|tool|function)[ _])?(?:input|arguments|args|parameters|params|kwargs)|参数"
"""Words that name a tool, and what it is given, as labels, tags and keys: any of these goes with any of those."""

_MARKERLESS = frozenset({"llama3_json", "pythonic", "fenced_json", "react"})
_LATER_STEPS: frozenset[ReplyWarning] = frozenset(
    {"hallucinated_observation", "extra_actions_dropped", "final_dropped"}
)
_LABEL = label_pattern(DEFAULT_LABELS)
_CALL_TAG = re.compile(r"<\s*+(?P<end>/?)\s*+(?P<kind>tool|function)[\s_-]*+calls?\s*+>", re.IGNORECASE)
_PART_TAG = re.compile(r"<\s*+(?P<end>/?)\s*+(?P<kind>function|parameter)\s*+(?P<sign>=\s*+|>)", re.IGNORECASE)
_ANY_TAG = re.compile(r"</?\s*+[\w|｜▁=-]{1,60}+\s*+>")
_WRAPPED = re.compile(r"""\{\s*+["'][^"'\n]{1,40}+["']\s*+:\s*+(?P<inner>[\[{].*[\]}])\s*+\}""", re.DOTALL)
_BETWEEN = re.compile(r"\)[ \t]*+[;\n]\s*+(?=[^\W\d][\w.]*+\s*+\()")
_WORD = re.compile(r"\w")
_ANNOUNCED = re.compile(
    r"\b(?:i will|i'll|i’ll|let me|let's|i need to|i am going to|i'm going to|i should)\s+(?:\w+\s+){0,2}?"
    r"(?:call|use|run|invoke|execute|query|look|check|get|fetch)\b|^\W*(?:now\s+)?(?:calling|invoking)\b"
    r"|[我来](?:将|会|要|需要|先|来|现在)*(?:调用|使用|查)|让我(?:先|来)?(?:调用|使用|查)|正在调用",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class TextCall:
    """A call of `tool` in a text, or what looks like one: then `parsed` is None.

    `standing`: it is all of the text; it ends the text, on lines of its own; or words stand around it. `is_announced`:
    the words right before it say that it is going to be made. `is_followed`: words stand behind a call that decodes.
    """

    tool: str
    text: str
    standing: Literal["alone", "last", "inside"]
    parsed: Parsed | None = None
    is_announced: bool = False
    is_followed: bool = False


def text_call(reply: str, tools: Catalogue | Sequence[ToolSpec], read: Read) -> TextCall | None:
    """The call of an offered tool that a reply writes as text: one that stands for itself before one among words."""
    offered = offered_of(tools)
    text = without_leaked_tokens(visible(reply).text)
    folded = fold(text)
    names = [name for look in filter(folded.__contains__, offered.folded) for name in offered.folded[look]]
    if not names and not (offered.tools and _has_both_labels(text)):
        return None
    spelled = "|".join(  # however the parts of a name are joined
        r"[\\_\-. ]{0,3}".join(map(re.escape, re.split(r"[_\-. ]", name)))
        for name in sorted(names, key=len, reverse=True)
    )
    forms = _forms(spelled) if names else ()
    fence = None
    blocks = [("", text)]
    if names:  # what may be a call at the end of the text: the fence that closes it, and lines that open a call
        at, last = 0, -1
        while (step := FENCE.search(text, at)) is not None:
            last = skip_blanks(text, step.start()) if step["fence"] else -1
            at = past_fence(text, step)
        fence = fence_at(text, last) if last >= 0 else None
        ends = fence is not None and skip_blanks(text, fence.end) == len(text)
        found_at = [(text[: fence.start], fence.content(text))] if fence is not None and ends else []
        opening = re.compile(rf"^[ \t]*+(?:[{{\[]|(?:functions\.)?(?:{spelled})\()", re.MULTILINE | re.IGNORECASE)
        starts = [match.start() for match in opening.finditer(text) if match.start()]
        some = [start for start in dict.fromkeys((*starts[:1], *starts[-1:])) if not _is_fenced(text, start)]
        found_at += [(text[:start], text[start:]) for start in some]
        blocks += [block for block in found_at if len(block[1]) <= _MOST_CHARS]
    held = HeldText(reply)
    among: TextCall | None = None
    for before, body in blocks:
        found = _decoded(
            before, reduce(lambda text, form: form[0].sub(form[1], text), forms, body), read, offered, held
        )
        if found is not None and found.parsed is not None and found.standing != "inside":
            content = before + ("" if found.parsed.content == body else found.parsed.content or "")
            return replace(found, parsed=replace(found.parsed, content=content if content.strip() else None, used=-1))
        among = among or found
    if among is not None or not names:
        return among
    described = _described(text[: fence.start], fence.content(text), spelled, offered) if fence is not None else None
    return _undecoded(text, blocks, spelled, offered) or described


def _is_fenced(text: str, at: int) -> bool:
    return text.count("```", 0, at) % 2 == 1


def _decoded(before: str, body: str, read: Read, offered: Offered, held: HeldText) -> TextCall | None:
    """The call that a block is, or holds."""
    parsed = read(body, dialect="react")
    if tool := _tool_of(parsed, offered, held, body):
        content = "" if parsed.content == body else parsed.content or ""  # all of it, where nothing could be read
        start = body.find(content) + len(content) if content.strip() else 0
        end = parsed.used if parsed.used >= 0 else len(body)
        ahead, call, behind = before + body[:start], body[start:end], body[end:].lstrip()
        line = ahead.rpartition("\n")[2].strip()
        is_apart = not line or parsed.format in ("react", "fenced_json")
        if parsed.format in _MARKERLESS:
            label = _LABEL.match(behind)  # steps that were written on without a result are no words about the first
            goes_on = not _LATER_STEPS.isdisjoint(parsed.warnings)
            goes_on = goes_on or (label is not None and not label["fence"] and not label["inline"])
            is_last = goes_on or _WORD.search(_ANY_TAG.sub("", behind)) is None
        else:  # a marker says that a call is meant, unless it stands in the middle of a sentence
            is_apart = is_apart or line[-1] in ".:!?…。：！？"
            is_last = is_apart or _WORD.search(_ANY_TAG.sub("", body[end:].partition("\n")[0])) is None
            is_apart = is_last and not line.endswith("`")
        if not is_apart or not is_last:
            return TextCall(tool, call, "inside", parsed, _ANNOUNCED.search(line) is not None)
        is_labelled = parsed.format == "react" and not body.lstrip().startswith(content.lstrip())  # as its thought
        is_alone = not _WORD.search(before if is_labelled else ahead)
        is_followed = bool(parsed.errors) or "trailing_text" in parsed.warnings
        is_followed = is_followed or _WORD.search(_ANY_TAG.sub("", body[end:])) is not None
        return TextCall(tool, call, "alone" if is_alone else "last", parsed, is_followed=is_followed)
    whole = body.strip()
    wrapped = _WRAPPED.fullmatch(whole)
    listed = f"[{_BETWEEN.sub('), ', whole.rstrip('; '))}]" if whole.endswith((")", ";")) else ""
    fenced = f"```json\n{whole}\n```" if whole.startswith("[") else ""  # a list of steps is read in a fence alone
    for inner in (wrapped["inner"] if wrapped else "", listed, fenced):
        parsed = read(inner, dialect="react") if inner else Parsed()
        if (tool := _tool_of(parsed, offered, held, inner)) and all(one.name for one in parsed.errors):
            standing = "last" if _WORD.search(before) else "alone"
            return TextCall(tool, whole, standing, parsed)
    return None


@lru_cache(maxsize=64)
def _forms(spelled: str) -> tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]:
    """A word that names one of the tools beside one for its arguments, each with the form that is read in its place.

    Labels in a list, a quotation or bold, or both on one line; labels in other words, of a JSON object; tags, also that
    of the tool itself around those of its parameters; keys. And a name in bold or code before its bracket.
    """
    bullet, name = r"^[ \t]*+(?:(?:[-+>*•]|\d++[.)])[ \t]++)*[*_]*+", rf"[`\"'\[]*+(?P<name>{spelled})[`\"'\]]*+"
    colon = r"[ \t*_]*+[:：][ \t*_]*+"
    behind = rf"[*_]*+(?:[ \t,;]++|[ \t]*+\n\s*+(?:{bullet})?)"
    labels = r"Action: \g<name>\nAction Input: "
    ids = r"""(?P<ids>(?:["'](?:type|id)["']\s*+:\s*+["'][^"'\n]{0,100}+["']\s*+,\s*+){0,2}+)"""
    key = rf"""["'](?!action["'][^,]{{0,200}}+,\s*+["']action_input)(?:name|{_ACTIONS})["']"""  # not that of a step
    rows = (
        (rf"{bullet}(?:action|行动){colon}{name}{behind}(?:action input|行动输入){colon}", labels),
        (rf"{bullet}(?:action|行动){colon}{name}[ \t*_]*+$", r"Action: \g<name>"),
        (rf"{bullet}{_ACTIONS}{colon}{name}{behind}(?:{_INPUTS}){colon}(?=\s*+(?:```\w*+\s*+)?\{{)", labels),
        (rf"<{_ACTIONS}>\s*+{name}\s*+</\w++>\s*+<(?:{_INPUTS})>", f"\n{labels}"),
        (rf"<(?P<name>{spelled})>(?P<parts>(?:{_PART})++)\s*+</(?P=name)>", _as_function),
        (rf"<(?P<name>{spelled})>\s*+(?=\{{)", r'<tool_call>{"name": "\g<name>", "arguments": '),
        (rf"(?<=\}})\s*+</(?:{spelled})>", "}</tool_call>"),
        (rf"(?<![\w*`])(?P<marks>\*\*|`)(?P<name>{spelled})(?P=marks)(?=\()", r"\g<name>"),
        (
            rf"""\{{\s*+{ids}{key}\s*+:\s*+["'](?P<name>{spelled})["']\s*+,\s*+["'](?:{_INPUTS})["']\s*+:""",
            r'{\g<ids>"name": "\g<name>", "parameters":',
        ),
    )
    found = ((re.compile(pattern, re.MULTILINE | re.IGNORECASE), form) for pattern, form in rows)
    return ((_CALL_TAG, _plain_tag), (_PART_TAG, _plain_tag), *found)


_PART = r"\s*+<(?P<key>\w{1,64}+)>[^<]*+</(?P=key)>"


def _as_function(call: re.Match[str]) -> str:
    parts = re.sub(
        _PART, lambda part: part.group().replace(f"<{part['key']}>", f"<parameter={part['key']}>", 1), call["parts"]
    )
    return f"<function={call['name']}>{re.sub(r'</[a-zA-Z_0-9]+>', '</parameter>', parts)}</function>"


def _plain_tag(tag: re.Match[str]) -> str:
    sign = tag.groupdict().get("sign")
    return f"<{tag['end']}{tag['kind'].lower()}{'_call>' if sign is None else sign.strip()}"


def _tool_of(parsed: Parsed, offered: Offered, held: HeldText, text: str) -> str:
    """The tool that is called; "" where none that is offered is, or an argument says what the reply does not."""
    if not all(held.holds(call.arguments) for call in parsed.calls):
        return ""
    named = [*(call.name for call in parsed.calls), *(faulty.name for faulty in parsed.errors)]
    known = next((offered.find(name).name for name in named if name and offered.find(name).known), "")
    if known or parsed.format != "react" or not named:
        return known
    # of a tool that there is not, both labels are needed: an object with an "action" may be anything
    return named[0] if _has_both_labels(text) else ""


def _has_both_labels(text: str) -> bool:
    return len({kind for label in _LABEL.finditer(text) for kind in ("action", "input") if label[kind]}) > 1


def _undecoded(text: str, blocks: Sequence[tuple[str, str]], spelled: str, offered: Offered) -> TextCall | None:
    """What looks like a call and decodes to none."""
    opened = rf"(?<![\w.-])(?:\w++\.)?(?:{spelled})\("
    form = rf"{opened}{_FIRST_ARGUMENT}|{_OBJECT.format(spelled)}|{_TAGS.format(spelled)}|{_BARE.format(spelled)}"
    form += rf"|<(?:{spelled})\s*+/?>|<{_ACTIONS}>\s*+(?:{spelled})\s*+</"
    anywhere = re.compile(form, re.IGNORECASE)
    held = anywhere.search(text, max(0, len(text) - _MOST_CHARS_OF_BROKEN))
    line = text.rfind("\n", 0, held.start()) + 1 if held is not None else 0
    own = [] if _is_fenced(text, line) else [(text[:line], text[line:])]
    for before, body in (*blocks, *own):
        begun = re.match(f"{_LEAD}(?:{form}|{opened})", body, re.IGNORECASE)
        last = max(map(body.rfind, "()[]{}<>"))
        ends_in_form = body[last : last + 1] in ("(", "[", "{", "<") or _WORD.search(body, last + 1) is None
        is_behind = _WORD.search(before) is not None
        is_item = is_behind and _ITEM.match(body) is not None  # of a list that shows how calls look
        if begun is not None and ends_in_form and not is_item:
            return TextCall(_offered_name(begun, spelled, offered), body.strip(), "last" if is_behind else "alone")
    if held is None:
        return None
    is_announced = _ANNOUNCED.search(text[line : held.start()]) is not None
    return TextCall(_offered_name(held, spelled, offered), held.group(), "inside", None, is_announced)


def _described(before: str, body: str, spelled: str, offered: Offered) -> TextCall | None:
    """A fence that holds all that a tool takes, where the words before it name the tool."""
    named = re.findall(rf"(?<![\w.-])(?:{spelled})(?!\w)", before, re.IGNORECASE)
    value = whole_value(body) if named else None
    arguments = as_object(value.value) if value is not None else None
    tool = offered.find(named[-1]).tool if named else None
    if not arguments or tool is None or offered.check(tool, arguments).errors:
        return None
    is_announced = _ANNOUNCED.search(before.rstrip().rpartition("\n")[2]) is not None
    return TextCall(tool.name, body.strip(), "inside", None, is_announced)


_LEAD = (
    r"""(?:[\s\-*>`"'\[{]|\d++\.|(?:await|return)\s|print\(|\w++\s*+=(?!=)|<\|\w++\|>"""
    r"""|(?:thought|action|tool|function|call)(?:[ _](?:name|call))?\s*+[:：]|(?:思考|行动|工具|调用)(?:工具)?[:：])*"""
)
"""What may stand before a form on its line: bullets, quotes, a label, what a result is given to."""
_ITEM = re.compile(r"\s*+(?:[-*+•>]|\d++[.)])\s")
_FIRST_ARGUMENT = r"""\s*+(?:[^\W\d]\w*+\s*+=(?!=)|["'\d\[{-])"""
_NOT_DECLARED = r"""(?![\s\S]{{0,400}}?["']type["']\s*+:\s*+["'](?:object|dict)["'])"""
_OBJECT = (
    rf"""(?:\{{{{[^{{{{}}}}]{{{{0,200}}}}?["'](?:{{0}})["'](?=[\s\S]{{{{0,400}}}}?["'](?:{_INPUTS})["']\s*+:)"""
    rf"""|\{{{{\s*+["']{_ACTIONS}["']\s*+:\s*+["'](?:{{0}})["']\s*+[,}}}}]){_NOT_DECLARED}"""
)
_TAGS = r"<\s*+(?:/?\s*+(?:tool|function)[\s_-]*+calls?|function\s*+=|invoke)\b[\s\S]{{0,200}}?\b(?:{0})\b"
_BARE = r"""(?<![\w.-])(?:\w++\.)?(?:{0})["'`:\s]{{0,8}}\{{\s*+["'}}]"""


def _offered_name(form: re.Match[str], spelled: str, offered: Offered) -> str:
    *_, last = re.finditer(spelled, form.group(), re.IGNORECASE)
    return offered.find(last.group()).name
