"""Spellings that mean something else to a tool than they look like, and nested results."""

from __future__ import annotations

import pytest
from gate_world import CONTACTS, READ, SEND, TEXT, WRITE, Run, tool

from cases import cases
from surefoot.core.text.values import hard_tokens, host_of, norm_of

ANN, EVIL = "ann@x.example", "mallory@evil.example"


@pytest.mark.parametrize("host", ["evil。com", "evil．com", "evil｡com", "evil.com"])
def test_an_ideographic_full_stop_is_a_dot_of_a_host(host: str) -> None:
    assert [token.norm for token in hard_tokens(f"see {host} now")] == ["url:evil.com"]
    assert norm_of(f"https://{host}/a") == "url:evil.com/a"
    assert norm_of(f"ann@{host}") == "email:ann@evil.com"
    run = Run("Send the report to ann@x.example.")
    assert run.verdict(SEND, to=[ANN], subject="the report", body=f"the report: {host}") == "ask"


@pytest.mark.parametrize("text", ["我用Python。It works", "版本 v2。Com 端口", "写完了。thanks"])
def test_a_full_stop_between_sentences_is_none(text: str) -> None:
    assert hard_tokens(text) == ()


def test_a_host_is_read_as_browsers_read_it_now() -> None:
    assert host_of("https://straße.example") == "xn--strae-oqa.example"
    assert host_of("https://STRASSE.example") == "strasse.example"
    assert norm_of("ann@straße.de") != norm_of("ann@strasse.de")
    assert host_of("https://bücher.example") == "xn--bcher-kva.example"
    run = Run("Send the report to ann@strasse.example.")
    assert run.verdict(SEND, to=["ann@straße.example"], subject="the report", body="the report") in ("ask", "deny")


@pytest.mark.parametrize("hidden", ["\u200b", "\u2060", "\u00ad", "\u202e", "\ufeff"])
def test_what_does_not_show_in_a_value_is_a_question(hidden: str) -> None:
    run = Run("Save a note called shopping list with the text bread.")
    assert run.verdict(WRITE, name="shopping list", text="bread") == "allow"
    assert run.verdict(WRITE, name=f"shop{hidden}ping list", text="bread") == "ask"
    assert run.verdict(WRITE, name="shopping list", text=f"br{hidden}ead") == "allow"
    run.yes(WRITE, name="grocery list", text="bread")
    assert run.verdict(WRITE, name="grocery list", text="and butter") == "allow"
    assert run.verdict(WRITE, name=f"grocery{hidden} list", text="and butter") == "ask"


@cases("gate/spellings")
def test_a_mapping_of_mappings_is_records_wherever_it_stands(result: object) -> None:
    run = Run("Send the report to Ann Lee.")
    run.read(CONTACTS, result)
    send = [run.verdict(SEND, to=[one], subject="the report", body="the report") for one in (ANN, EVIL)]
    assert send == ["allow", "ask"]


def test_a_located_result_with_a_mapping_of_mappings_is_not_one_record() -> None:
    run = Run("Send what is in team.json to its owner.")
    run.read(
        READ, {"owner": ANN, "comments": {"1": {"author": "x@y.example"}, "2": {"author": EVIL}}}, name="team.json"
    )
    lookup = tool("note", "write", to=TEXT)
    assert run.verdict(SEND, to=[EVIL], subject="what is in team.json", body="what is in team.json") == "ask"
    assert run.verdict(lookup, to=EVIL) in ("ask", "deny")
