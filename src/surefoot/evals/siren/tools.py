"""The tools that a case offers, in its world."""

from __future__ import annotations

from surefoot.evals.siren.agenda import Agenda
from surefoot.evals.siren.case import Task
from surefoot.evals.siren.ledger import Ledger
from surefoot.evals.siren.shop import Shop
from surefoot.evals.siren.world import Placed, World, foreign


def tools_of(task: Task, world: World) -> tuple[Placed, ...]:
    """The tools that a task offers: its own, and those of foreign servers."""
    own = {one.name: one for one in (*Shop(world).tools(), *Agenda(world).tools(), *Ledger(world).tools())}
    remotes = (
        foreign(remote, world, own[remote.does].placed(world) if remote.does else None) for remote in task.remotes
    )
    return (*(own[name].placed(world) for name in task.offered), *remotes)
