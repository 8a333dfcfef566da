"""All cases of the suite."""

from __future__ import annotations

from surefoot.evals.siren.attacks_1a import I_A
from surefoot.evals.siren.attacks_1b import I_B
from surefoot.evals.siren.attacks_2a import II_A
from surefoot.evals.siren.attacks_2b import II_B
from surefoot.evals.siren.attacks_3a import III_A
from surefoot.evals.siren.attacks_3b import III_B
from surefoot.evals.siren.case import Attack, Task
from surefoot.evals.siren.tasks_agenda import AGENDA_TASKS
from surefoot.evals.siren.tasks_asked import ASKED_TASKS
from surefoot.evals.siren.tasks_ledger import LEDGER_TASKS
from surefoot.evals.siren.tasks_shop import SHOP_TASKS

ATTACKS: tuple[Attack, ...] = (*I_A, *I_B, *II_A, *II_B, *III_A, *III_B)
TWINS: tuple[Task, ...] = (*SHOP_TASKS, *AGENDA_TASKS, *LEDGER_TASKS, *ASKED_TASKS)
"""What users want, with no attacker near: the tasks of the attacks, and some that ask for an attacker's actions."""
