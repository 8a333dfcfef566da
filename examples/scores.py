"""Two tools for the first task: the exam scores of a class, as in seed 002."""

from surefoot import tool

SCORES = {"Alice": 90, "Bob": 81, "Carol": 77, "小明": 95}


@tool(effect="read")
async def exam_score(name: str) -> int:
    """Exam score of one student.

    Args:
        name: The student's first name.
    """
    if name not in SCORES:
        raise LookupError(f"no student is called {name!r}; there are {', '.join(SCORES)}")
    return SCORES[name]
