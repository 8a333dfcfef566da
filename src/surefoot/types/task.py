"""What a run is for: the user's words, and what comes with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from surefoot.types.attachments import Attached, Attachment
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.errors import ConfigError
from surefoot.types.plan import NO_CONTEXT, PlanStep, TaskContext, check_steps
from surefoot.types.settings import Check, choice, of_type, text, tuple_of

Author = Literal["person", "program", "model"]
"""Whose words a task is. Source: spec/serving.md, section 7."""

_MADE_OF: Mapping[str, Check] = {  # what is something else could not be read back
    "attachments": tuple_of(
        lambda one: isinstance(one, Attachment) and type(one.name) is type(one.text) is str,
        "give a tuple of Attachment, with a name and a text each",
    ),
    "job": text,
    "operator": text,
    "context": of_type(TaskContext),
    "author": choice(*get_args(Author)),
}


@dataclass(frozen=True, slots=True)
class Task:
    """What the user wants: their own words, and what they handed over with them.

    Attempts at the same `operator` of the same `job` belong together: a job is a run with its children, an operator one
    step of a plan ("main" without a plan). Without a job a run stands for itself. Source: spec/reasoners.md, section 8.

    `steps` is a plan that the reasoner `react` runs in its order, and `plan` as its dependencies have it, and repairs;
    none leaves all to the model. `context` is what is known around the task, for whoever plans it. `author` is who has
    written `text`: of a model's or a program's, no value vouches for itself. Raises `UsageError`.
    """

    text: str
    attachments: tuple[Attachment, ...] = ()
    job: str = ""
    operator: str = "main"
    steps: tuple[PlanStep, ...] = ()
    context: TaskContext = NO_CONTEXT
    author: Author = "person"

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        if self.steps:
            check_steps(self.steps)

    @classmethod
    def of(cls, task: str | Task, attachments: Attached = ()) -> Task:
        """A task as it was given, with what comes beside it.

        Raises `UsageError` for what is not a text or says nothing, and for a file that cannot be attached.
        """
        task = task if isinstance(task, Task) else cls(task)
        is_text = isinstance(task.text, str)  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
        if not is_text or not (task.text.strip() or task.steps or task.attachments or attachments):
            raise ConfigError("task", task.text, "say in words what is to be done")
        for name, check in _MADE_OF.items():
            check(name, getattr(task, name))
        if isinstance(attachments, str) or not hasattr(attachments, "__iter__"):
            raise ConfigError("attachments", attachments, "give a list, such as ['notes.txt']")
        more = [one if isinstance(one, Attachment) else Attachment.from_path(one) for one in attachments]
        return replace(task, attachments=(*task.attachments, *more)) if more else task
