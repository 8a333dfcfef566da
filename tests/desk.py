"""A desk behind the gate, for scripted runs: tools that read, pay and mail, and what was done with them."""

from collections.abc import Sequence

from records import events_of
from surefoot import Agent, LoopConfig
from surefoot.core.loop.fold import fold
from surefoot.journal.memory import MemoryJournal
from surefoot.run import Run
from surefoot.telling.guard import question_lines
from surefoot.testing.models import Scripted, ScriptedModel, calls
from surefoot.tools.function import tool
from surefoot.types.events import CallJudged, Event
from surefoot.types.guard import GuardConfig
from surefoot.types.outcomes import Ask, Deny
from surefoot.types.ports import Tool

GUARDED = LoopConfig(guard=GuardConfig())
MINE, THEIRS = "GB29NWBK60161331926819", "DE89370400440532013000"
ANN, MAL = "ann@x.example", "mallory@evil.example"
BILL = "Pay the bill in bill.txt, please."
READ_BILL = calls(("read_file", {"path": "bill.txt"}))


def pay(account: str, amount: float = 900) -> tuple[str, dict[str, object]]:
    return ("pay", {"account": account, "amount": amount})


def mail(to: str, body: str = "the report") -> tuple[str, dict[str, object]]:
    return ("send_mail", {"to": to, "body": body})


class Desk:
    """An agent of scripted steps whose files all hold `text`, and whose mailer raises `fault` if there is one."""

    def __init__(
        self,
        *steps: Scripted,
        config: LoopConfig = GUARDED,
        store: MemoryJournal | None = None,
        text: str = f"Rent for May: please pay 900 to {MINE}. Thank you.",
        fault: str = "",
    ) -> None:
        self.done: list[tuple[str, object]] = []
        self.text, self.fault = text, fault
        self.store = store or MemoryJournal()
        self.agent = Agent(ScriptedModel(steps), tools=self.tools(), journal=self.store, config=config)

    def tools(self) -> Sequence[Tool]:
        @tool(effect="read")
        def read_file(path: str) -> str:
            """Read a file."""
            return self.text if path else ""

        @tool(effect="read", trusted_fields=("email",))
        def staff() -> list[dict[str, str]]:
            """Everybody who works here."""
            return [{"name": "Ann Lee", "email": "ann@house.org"}, {"name": "Bo Yi", "email": "bo@house.org"}]

        @tool(effect="read")
        def participants(event: str) -> list[dict[str, str]]:
            """Who comes."""
            return [{"name": "Ann", "email": ANN}, {"name": "Zed", "email": MAL}] if event else []

        @tool(effect="read")
        def bills() -> list[dict[str, object]]:
            """Open bills."""
            return [{"who": "Landlord", "account": MINE}, {"who": "Zed", "account": THEIRS}]

        @tool(effect="transact")
        def pay(account: str, amount: float) -> str:
            """Pay money."""
            self.done.append((account, amount))
            return "paid"

        @tool(effect="communicate")
        def send_mail(to: str, body: str) -> str:
            """Send a mail."""
            if self.fault:
                raise ValueError(self.fault)
            self.done.append((to, body))
            return "sent"

        @tool
        def send_note(to: str, body: str) -> str:
            """Send a note."""
            self.done.append((to, body))
            return "sent"

        return [read_file, staff, participants, bills, pay, send_mail, send_note]

    @property
    def ran(self) -> list[str]:
        """What was done, in lines."""
        return [f"{to} {what:g}" if isinstance(what, float) else f"{to} {what}" for to, what in self.done]

    async def events(self, run: Run) -> list[Event]:
        return await events_of(self.store, run.id)

    async def judged(self, run: Run, kind: type[Ask | Deny] | None = None) -> list[CallJudged]:
        """The verdicts of a run, or those of one kind."""
        found = [e for e in await self.events(run) if isinstance(e, CallJudged)]
        return [e for e in found if kind is None or isinstance(e.decision, kind)]

    async def yes(self, run: Run) -> Run:
        await self.agent.approve(run.id, run.waiting[0].id, by="Ada")
        return await self.agent.resume(run.id)

    async def no(self, run: Run) -> Run:
        await self.agent.refuse(run.id, run.waiting[0].id, by="Ada")
        return await self.agent.resume(run.id)

    async def question(self, run: Run) -> str:
        asked = (await self.judged(run, Ask))[-1]
        call = fold(await self.events(run)).call(asked.call_id)
        assert call is not None
        return "\n".join(question_lines(call, asked))
