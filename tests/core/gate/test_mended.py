"""Ways in which a value once proved what it does not, played call by call."""

from __future__ import annotations

from gate_world import NUMBER, SEARCH, SEND, TEXT, TEXTS, Run, tool
from gate_world import tool as made

from cases import cases
from surefoot.types.tools import Effect

ANN, BOB, EVIL = "ann@x.example", "bob@y.example", "mallory@evil.example"


def _send(run: Run, to: str, body: str = "the report for Team Sync") -> str:
    return run.verdict(SEND, to=[to], subject="Team Sync", body=body)


@cases("gate/mended")
def test_a_list_in_an_envelope_is_a_list_of_records(result: object) -> None:
    run = Run('Reply to the mail "Team Sync" that I will be there.')
    run.read(SEARCH, result, query="Team Sync")
    (source,) = run.known.sources
    assert [{ANN, EVIL} & {a.text for a in source.index.records[number].atoms} for number in source.opened] == [{ANN}]


@cases("gate/mended")
def test_a_trusted_field_is_a_whole_path(result: object) -> None:
    staff = tool("staff", "read", trusted_fields=("email",))
    run = Run("Send the report to the head of sales.")
    run.read(staff, result)
    assert (_send(run, ANN, "the report"), _send(run, EVIL, "the report")) == ("allow", "ask")


@cases("gate/mended")
def test_who_is_left_out_gets_nothing(words: str) -> None:
    run = Run(words)
    assert (_send(run, ANN, "the report"), _send(run, BOB, "the report")) == ("allow", "deny")
    decision = run.judged(SEND, to=[BOB], subject="report", body="the report")[0]
    assert "\ufffc" not in str(decision)
    assert "bob@y.example" in str([c.description for c in run.known.words.anchor.constraints.constraints])


@cases("gate/mended")
def test_what_is_left_out_of_nothing_is_meant(words: str) -> None:
    assert _send(Run(words), ANN, "the report") != "deny"


@cases("gate/mended")
def test_words_that_only_look_like_leaving_out_forbid_nothing(words: str) -> None:
    assert not Run(words).known.words.anchor.constraints.constraints


@cases("gate/mended")
def test_a_value_glued_to_a_word_is_one(body: str) -> None:
    run = Run("Send the report to ann@x.example.")
    assert _send(run, ANN, "the report") == "allow"
    assert _send(run, ANN, body) == "ask"


REMOVE = tool("delete_path", "delete", path=TEXT)
PASSWORD = tool("set_password", "write", user=TEXT, password=TEXT)


@cases("gate/mended")
def test_a_piece_of_what_is_named_proves_nothing(words: str, path: str, verdict: str) -> None:
    assert Run(words).verdict(REMOVE, path=path) == verdict


@cases("gate/mended")
def test_a_secret_is_what_the_words_give_as_one(words: str, password: str, verdict: str) -> None:
    assert Run(words).verdict(PASSWORD, user="user ann", password=password) == verdict


@cases("gate/mended")
def test_what_a_call_would_do_is_what_the_words_say(
    words: str, tool: tuple[str, Effect, dict[str, str]], arguments: dict[str, object], verdict: str
) -> None:
    name, effect, kinds = tool
    spec = made(name, effect, **{key: {"s": TEXT, "n": NUMBER, "a": TEXTS}[kind] for key, kind in kinds.items()})
    assert Run(words).verdict(spec, **arguments) == verdict
