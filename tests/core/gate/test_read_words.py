import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.gate.stems import stem, words_of_name
from surefoot.core.gate.words import read_words
from surefoot.types.guard import Cue, EntityKind, SecurityConstraint
from surefoot.types.tools import Effect


def asked(text: str) -> str:
    return " ".join(sorted(read_words(text).effects_asked - {"read"}))


def constraints(text: str) -> tuple[SecurityConstraint, ...]:
    return read_words(text).constraints.constraints


def forbidden(text: str) -> set[tuple[Effect | None, str]]:
    return {(c.condition.effect, t) for c in constraints(text) for t in c.condition.forbidden_targets}


def names(text: str) -> list[str]:
    return [entity.text for entity in read_words(text).entities]


@pytest.mark.parametrize(
    "forms",
    [
        "send sends sending sent", "pay pays paying paid", "delete deletes deleting deleted", "move moved moving moves",
        "book books booking booked", "cancel cancels canceled cancelled cancelling", "reply replies replied replying",
        "use uses used using", "save saved saving", "get gets getting got", "add adds adding added", "id ids",
        "write wrote written writing", "purchase purchases purchasing", "box boxes", "size sizes", "search searches",
        "pass passes passed passing", "note notes noted noting", "friend friends friend's", "share sharing shares",
        "buy bought buying", "transfer transferred transferring", "try tries tried", "die dies died", "bill bills",
        "tip tipped tipping", "address addresses", "fix fixes fixing", "email emailed emails", "hire hired hiring",
    ],
)  # fmt: skip
def test_the_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1, {form: stem(form) for form in forms.split()}


@pytest.mark.parametrize("word", ["need", "status", "bring", "this", "gas", "bus", "红包", "", "a", "x's"])
def test_what_only_looks_like_an_ending_stays(word: str) -> None:
    assert stem(word) == word.removesuffix("'s")


def test_different_words_keep_different_stems() -> None:
    words = "note not send sand share shear pay pain order older post past move love plan add ad tip type"
    assert len({stem(word) for word in words.split()}) == len(words.split())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("send_email", "send email"), ("sendEMail", "send e mail"), ("getURLInfo", "get url info"),
        ("a-b.c d", "a b c d"),

        ("HTTPGet", "http get"), ("send2fa", "send fa"), ("发送_邮件", "发送 邮件"), ("__x__", "x"), ("", ""),
    ],
)  # fmt: skip
def test_a_name_is_split_into_its_words(name: str, words: str) -> None:
    assert " ".join(words_of_name(name)) == words


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("What is the weather in Rome?", ""),
        ("Summarise the text for me.", ""),
        ("Summarise the report.", ""),
        ("Which of my friends live in Rome?", ""),
        ("Make me a list of what I read.", ""),
        ("Order the rows in order to find the largest.", "transact"),
        ("Look at it in order to find the largest.", ""),
        ("Send the minutes to Ann.", "communicate"),
        ("Forwarding it to Ann would be nice.", "communicate"),
        ("Let Ann know when it is ready.", "communicate"),
        ("Let me know when it is ready.", ""),
        ("Get back to Ann about lunch.", "communicate"),
        ("Pay the bill.", "transact"),
        ("Rent a car.", "transact"),
        ("Make a reservation at the inn.", "transact"),
        ("Set up a payment to Ann.", "transact write"),
        ("Send Ann $50.", "communicate transact"),
        ("Send Ann 50 euros.", "communicate transact"),
        ("Change the invoice.", "transact write"),
        ("How much rent is it?", "transact"),
        ("How large is the invoice?", ""),
        ("Get rid of the old rows.", "delete"),
        ("Throw the old rows away.", "delete"),
        ("Erased rows are gone.", "delete"),
        ("Rename the folder.", "write"),
        ("Take a note that it rains.", "write"),
        ("Write an e-mail to Ann.", "communicate write"),
        ("Look at https://a.example/delete/pay and pay.txt", ""),
        ("给小明发邮件", "communicate"),
        ("把明天的会议取消", "delete write"),
        ("向小明转账一百元", "transact"),
        ("帮我预订酒店", "transact write"),
        ("修改账单", "transact write"),
        ("今天天气怎么样", ""),
        ("新建一个日程并通知大家", "communicate write"),
    ],
)
def test_what_the_words_ask_for(text: str, effects: str) -> None:
    assert asked(text) == effects
    assert "read" in read_words(text).effects_asked


def test_a_configuration_adds_words() -> None:
    extra = {"communicate": ("poke", "拍一拍"), "delete": ("send to the moon",)}
    assert read_words("Poking Ann is fun.", extra).effects_asked == {"read", "communicate"}
    assert read_words("拍一拍小明", extra).effects_asked == {"read", "communicate"}
    assert read_words("Now Send to the Moon.", extra).effects_asked == {"read", "communicate", "delete"}
    assert read_words("Poking Ann is fun.").effects_asked == {"read"}


@pytest.mark.parametrize(
    ("text", "effects", "targets"),
    [
        ("Don't email Bob.", "", "communicate:Bob"),
        ("Never send it to Bob Miller or Carol.", "", "communicate:Bob Miller,communicate:Carol"),
        ("Please do not, under any circumstances, delete 'a b'.", "", "delete:a b"),
        ("Do not ever rename or delete notes.txt.", "", "delete:notes.txt,write:notes.txt"),
        ("Don't make any payments to Bob.", "", "transact:Bob"),
        ("Never send money to Bob.", "", "communicate:Bob,transact:Bob"),
        ("Don't touch the folder 'Private'.", "", "None:Private"),
        ("Don't open 'Private'.", "", "read:Private"),
        ("It must not be sent to x@evil.example.", "", "communicate:x@evil.example"),
        ("I don't want you to email Bob.", "", "communicate:Bob"),
        ("Rename it without emailing Bob.", "write", "communicate:Bob"),
        ("Don’t email Mr. Miller.", "", "communicate:Miller"),
        ("Don't email Bob, send it to Carol instead.", "communicate", "communicate:Bob"),
        ("Don't email Bob but call Carol.", "communicate", "communicate:Bob"),
        ("Email Carol. Don't email Bob. Pay Dan.", "communicate transact", "communicate:Bob"),
        ("Don't delete anything.", "", ""),
        ("Don't pay; send a mail about the invoice to Ann.", "communicate transact", ""),
        ("Don't pay the invoice; mail Ann.", "communicate", ""),
        ("You don't have to email Bob.", "", ""),
        ("I don't email Bob, as a rule.", "", ""),
        ("Don't forget to email Bob.", "communicate", ""),
        ("Please don't hesitate to email Bob.", "communicate", ""),
        ("Do not worry, email Bob.", "communicate", ""),
        ("Why don't you email Bob?", "communicate", ""),
        ("Tell me whether or not to email Bob.", "communicate", ""),
        ("Don't think, email Bob.", "communicate", ""),
        ("不要给“小明”发邮件", "", "communicate:小明"),
        ("请别转账给 Bob。", "", "transact:Bob"),
        ("不得删除「账单.txt」，请改名。", "write", "delete:账单.txt"),
        ("给“小红”发邮件，不要发给“小明”", "communicate", "communicate:小明"),
        ("别忘了给“小明”发邮件", "communicate", ""),
        ("不要忘记给“小明”发邮件", "communicate", ""),
        ("能不能给“小明”发邮件", "communicate", ""),
        ("不用给“小明”发邮件", "", ""),
        ("给别人发邮件", "communicate", ""),
        ("特别给“小明”发邮件", "communicate", ""),
    ],
)
def test_what_the_words_forbid(text: str, effects: str, targets: str) -> None:
    assert asked(text) == effects
    assert forbidden(text) == {
        (None if pair[0] == "None" else pair[0], pair[1])
        for pair in (target.split(":", 1) for target in targets.split(",") if target)
    }
    for _, target in forbidden(text):
        assert target not in names(text)
        assert target.casefold() not in read_words(text).text


def test_what_is_forbidden_in_one_place_may_be_named_in_another() -> None:
    anchor = read_words("Send it to Bob. Never send money to Bob.")
    assert [entity.text for entity in anchor.entities] == ["Bob"]
    assert anchor.effects_asked == {"read", "communicate"}


def test_a_forbid_proves_no_number_and_no_day() -> None:
    anchor = read_words("Pay Ann 20. Never pay 500 to Bob on May 5th.")
    assert anchor.numbers == {"20"}
    assert anchor.dates == ()
    assert "never" not in anchor.stems
    assert "an" not in anchor.text.split()


@pytest.mark.parametrize(
    ("text", "effect", "targets"),
    [
        ("Only send it to Bob.", "communicate", "Bob"),
        ("Send it only to bob@x.example.", "communicate", "bob@x.example"),
        ("Pay only ACME and Miller.", "transact", "ACME Miller"),
        ("Mail Ann, but pay only Bob.", "transact", "Bob"),
        ("Don't pay anyone except ACME.", "transact", "ACME"),
        ("Delete nothing but 'old'. Only delete 'old'.", "delete", "old"),
        ("只发给 Bob", "communicate", "Bob"),
        ("Read only the mail of Bob.", "", ""),
        ("Send the only file to Bob.", "", ""),
        ("Mail Bob only if it rains.", "", ""),
        ("Not only mail Bob.", "", ""),
        ("不只发给 Bob", "", ""),
    ],
)
def test_only_allows_no_other(text: str, effect: str, targets: str) -> None:
    found = [c for c in constraints(text) if c.condition.allowed_targets]
    assert [(c.constraint_type, c.condition.effect, " ".join(c.condition.allowed_targets)) for c in found] == (
        [("allow", effect, targets)] if effect else []
    )


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("Buy it for at most $50.", 50.0), ("Don't spend more than 1,200.50 euros. Buy it.", 1200.5),
        ("Buy it, but no more than 30 USD", 30.0), ("买票，最多300元", 300.0), ("不要超过 80 元，买票", 80.0),
        ("Buy five for at most $50 each.", None), ("Buy at most 3.", None), ("Find shoes for more than $50.", None),
    ],
)  # fmt: skip
def test_a_sum_that_bounds_the_whole_is_a_limit(text: str, amount: float | None) -> None:
    found = [c.condition for c in constraints(text)]
    assert [c.max_amount for c in found] == ([] if amount is None else [amount])
    if "uy" in text or "买" in text:
        assert "transact" in read_words(text).effects_asked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mail ann@x.example and see https://x.example/a.", {"email:ann@x.example", "url:https://x.example/a"}),
        (
            "Open bill-may.txt, ./a/b.csv and report.final.pdf.",
            {"file:bill-may.txt", "file:./a/b.csv", "file:report.final.pdf"},
        ),
        ("读取账单.txt", {"file:账单.txt", "file:读取账单.txt"}),
        (
            "Add 'Lunch at Bob's' and \"b c\" and “d e” and `f g`.",
            {"quoted:Lunch at Bob's", "quoted:b c", "quoted:d e", "quoted:f g", "name:Lunch", "name:Bob"},
        ),
        ("看「甲乙」《丙丁》“戊己”", {"quoted:甲乙", "quoted:丙丁", "quoted:戊己"}),
        ("Cancel id 5, no. 6, #7 and number 8.", {"id:5", "id:6", "id:7", "id:8"}),
        ("Cancel ids 5, 6 and 7.", {"id:5", "id:6", "id:7"}),
        ("取消编号5和编号为 A-17 的", {"id:5", "id:A-17"}),
        ("There are no 5 star inns; 5 of them.", set[str]()),
        ("Ask Anna Lee's boss about the Bank of Utopia.", {"name:Anna Lee", "name:Bank of Utopia"}),
        ("Please Send Anna the Team Lunch plan. Remove Zed.", {"name:Anna", "name:Team Lunch", "name:Zed"}),
        ("Can You Tell Him? I Will. PDF, URL. Al", set[str]()),
        ("Write Ätna and Ольга, on Monday.", {"name:Ätna", "name:Ольга"}),
        ("给Bob发邮件", {"name:Bob"}),
        ("the users' file and the dogs' food", set[str]()),
        ('a 5" disk and a 7" disk', set[str]()),
        (f"say '{'x y ' * 30}' now", set[str]()),
    ],
)
def test_what_the_words_name(text: str, expected: set[str]) -> None:
    assert {f"{entity.kind}:{entity.text}" for entity in read_words(text).entities} == expected


def test_entities_have_normal_forms_and_come_once() -> None:
    kinds: list[tuple[EntityKind, str]] = [(e.kind, e.norm) for e in read_words("Ann ＡＮＮ 'b  c' and Ann").entities]
    assert kinds == [("name", "ann ann"), ("quoted", "b c"), ("name", "ann")]


@pytest.mark.parametrize(
    ("text", "cues"),
    [
        ("Do everything in the todo list on www.x.example.", "adoption delegation set"),
        ("Follow the instructions in Bob's mail.", "adoption delegation"),
        ("Perform the actions that Ann asked for.", "adoption"),
        ("完成文件里的任务", "adoption delegation"),
        ("Perform the following tasks in my house: eat, sleep.", ""),
        ("Don't follow the instructions in the mail.", "delegation"),
        ("Complete the form.", ""),
        ("Pay the bill.", "delegation"),
        ("Use the address mentioned in his note.", "delegation"),
        ("Take the account from her file.", "delegation"),
        ("Send it as Ann asked.", "delegation"),
        ("Look up her address in the list.", "delegation"),
        ("按照邮件里的要求做", "adoption delegation"),
        ("Invite everyone.", "set"), ("Mail both of them.", "set"), ("给所有人发邮件", "set"),
        ("Meet tomorrow.", "relative_date"), ("Meet on Tuesday.", "relative_date"), ("下周三开会", "relative_date"),
        ("Meet in 3 days.", "relative_date"), ("Meet on 5 May.", ""), ("Send it to Ann.", ""), ("发给小明", ""),
    ],
)  # fmt: skip
def test_turns_of_phrase(text: str, cues: str) -> None:
    found: frozenset[Cue] = read_words(text).cues
    assert " ".join(sorted(found)) == cues


def test_what_else_an_anchor_holds() -> None:
    anchor = read_words("Pay  “Ann” 1,200.50 on May 5th")
    assert anchor.numbers == {"1200.5"}
    assert anchor.dates == ((5, 5, 0),)
    assert "pay" in anchor.stems
    assert anchor.text.startswith("pay “ann”")
    assert len(anchor.words_sha256) == 64
    assert anchor.made_by == "rules"


LUMPS = [
    "don't ",
    "send ",
    "pay ",
    "Bob ",
    "'Ann' ",
    "only ",
    "not ",
    "delete ",
    "at most $5 ",
    ". ",
    ", ",
    "and ",
    "\n",
    "id 5 ",
    "a.txt ",
    "everyone ",
    "except ",
    "不要",
    "发给",
    "别",
    "“小明”",
    "，",
    "the ",
    "x@y.example ",
    '"',
    "make a payment ",
]


@given(st.text() | st.lists(st.sampled_from(LUMPS), max_size=40).map("".join))
def test_any_text_is_read(text: str) -> None:
    anchor = read_words(text)
    assert anchor == read_words(text)
    assert all(entity.norm or not entity.text.strip() or entity.kind == "quoted" for entity in anchor.entities)
    assert all(
        constraint.condition.effect != "read" or "read" in anchor.effects_asked for constraint in constraints(text)
    )


WORD_OF: dict[Effect, str] = {"communicate": "email", "transact": "purchase", "delete": "erase", "write": "rename"}


@given(
    st.sampled_from(sorted(WORD_OF)),
    st.sampled_from(["don't", "do not", "never", "Please do not ever", "must not"]),
    st.sampled_from(["Bob", "'the plan'", "it", "anything", "x@y.example"]),
    st.sampled_from(sorted(WORD_OF)),
)
def test_what_is_negated_is_asked_for_only_elsewhere(effect: Effect, no: str, what: str, other: Effect) -> None:
    assert effect not in read_words(f"{no} {WORD_OF[effect]} {what}.").effects_asked
    assert (effect in read_words(f"{no} {WORD_OF[effect]} {what}. {WORD_OF[other]} Zed.").effects_asked) == (
        effect == other
    )


@pytest.mark.parametrize(
    "lump",
    [
        "don't email Bob and ",
        "Only send Bob ",
        '"',
        "'a ",
        "“",
        "id 5, ",
        "x. ",
        "不要发给",
        "a/b.",
        "let a b c ",
        " ",
        "Bob's ",
    ],
)
def test_reading_takes_time_in_line_with_the_length(lump: str) -> None:
    """Sixteen times the text takes far less than 16² times as long."""

    def cpu_s(length: int) -> float:
        text = (lump * length)[:length]
        times: list[float] = []
        for _ in range(2):
            start = time.process_time()
            read_words(text)
            times.append(time.process_time() - start)
        return min(times)

    assert cpu_s(32_000) < 80 * max(cpu_s(2_000), 0.002)


def test_a_constraint_says_which_words_it_is_of() -> None:
    [one] = constraints("Hello. Don't  email Bob.")
    assert re.fullmatch(r"words-\d+", one.constraint_id)
    assert one.description == "the user's words: Don't email Bob"
    assert one.priority == 1
