"""Many tasks with one agent: so many at a time, each a run with an id of its own that is made only once.

What has its answer is not run again, what was interrupted goes on: so a batch that is begun again does what is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable

from surefoot.chat import Starts
from surefoot.core.loop.fold import fold
from surefoot.run import Out, Run
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.ports import JournalStore
from surefoot.types.settings import whole
from surefoot.types.task import Task


async def run_all(
    run: Starts[Out],
    resume: Starts[Out],
    store: JournalStore,
    tasks: Iterable[str | Task],
    *,
    name: str,
    concurrency: int,
) -> AsyncGenerator[Run[Out]]:
    """The runs of some tasks, as they end. Tasks are taken when there is room for them. See `Agent.map`."""
    if isinstance(tasks, str) or not hasattr(tasks, "__iter__"):
        raise ConfigError("tasks", tasks, "give a list of tasks")
    whole(1)("concurrency", concurrency)

    async def one(number: int, task: Task) -> Run[Out]:
        run_id = f"{name}-{number:06}"
        if run_id not in await store.beginning(run_id, 1):  # it would sort first
            return await run(task, run_id=run_id)
        records, _ = await store.read_recorded(run_id)
        before = fold(record.event for record in records)
        if before.task is None or (before.task.text, before.task.attachments) != (task.text, task.attachments):
            raise UsageError(f"run {run_id} has another task; give this batch another id")
        return await resume(run_id)

    left = enumerate((task if isinstance(task, Task) else Task(task) for task in tasks), 1)
    going: set[asyncio.Task[Run[Out]]] = set()
    try:
        while True:
            while len(going) < concurrency and (following := next(left, None)) is not None:
                going.add(asyncio.ensure_future(one(*following)))
            if not going:
                return
            for each in (await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED))[0]:
                going.remove(each)
                yield each.result()
    finally:
        for each in going:
            each.cancel()
        await asyncio.gather(*going, return_exceptions=True)


def number_of(run: Run) -> int:
    """The place of a run's task in its batch, from 1."""
    return int(run.id.rpartition("-")[2])
