"""Runs of every kind for what tells of them as spans: each by its name, driven on the store that is given."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from plan_kit import ONE_BY_ONE, WORDS, World
from scenes import Row, config_of, drive, models_of, rows_in
from surefoot import Agent
from surefoot.journal.codec import decode, decode_catalogue
from surefoot.telling.span_records import SpanRecord
from surefoot.types.ports import JournalStore, Recorded
from test_agent_tools import TASK, Post, asking, clerk, desk
from test_replay_twenty import RUNS, Make

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.journal"))


def planned(row: Row) -> Make:
    """The run of a row of the table of plans."""

    async def made(run_id: str, store: JournalStore) -> object:
        world, given = World(**row.get("world", {})), dict(row.get("agent", {}))
        config = config_of({**ONE_BY_ONE, **given.pop("config", {}), **row.get("config", {})})
        (model,) = models_of(row, WORDS).values()
        agent = Agent(model, world.tools(), journal=store, config=config, reasoner="plan", **given)
        return await drive(agent, row, run_id=run_id)

    return made


async def delegated(run_id: str, store: JournalStore) -> object:
    return await desk(clerk(Post()), store).run(TASK, run_id=run_id)


async def asked(run_id: str, store: JournalStore) -> object:
    """The run of the agent waits for a person, so the outer one goes on in another drive."""
    agent = desk(asking(Post()), store)
    run = await agent.run(TASK, run_id=run_id)
    await agent.approve(run_id, run.waiting[0].id, by="Ada")
    return await agent.resume(run_id)


async def waiting(run_id: str, store: JournalStore) -> object:
    return await desk(asking(Post()), store).run(TASK, run_id=run_id)


MAKES: Mapping[str, Make] = {
    **RUNS,
    **{row["why"]: planned(row) for row in rows_in("plans", "runs") if "config" not in row.get("agent", {})},
    "an agent as a tool": delegated,
    "an agent that asks": asked,
    "an agent that waits": waiting,
}


def golden(path: Path) -> Sequence[Recorded]:
    """A golden journal, a record a second."""
    first, *rows = path.read_bytes().splitlines()
    tools, records = first.partition(b"\t")[2], list[Recorded]()
    for seq, row in enumerate(rows):
        version, _, body = row.partition(b"\t")
        event = decode(body, int(version), lambda _, form: decode_catalogue(tools, form))
        records.append(Recorded(seq, 1_790_000_000.0 + seq, "", event))
    return records


def way_of(span: SpanRecord, spans: Mapping[str, SpanRecord]) -> tuple[str, ...]:
    """The names from the first span of the trace to this one."""
    around = spans.get(span.parent_id)
    return (*(way_of(around, spans) if around is not None else ()), span.name)
