"""Whether the circuit of an endpoint is closed, open or half open. Source: spec/reasoners.md, section 1.

One circuit belongs to one (wire, base URL, model). Everybody in this process who asks that endpoint shares it, so that
what one run has found out spares the others; it is forgotten with the last of them.
"""

from collections import deque
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

FAILURES = 5
WITHIN_S = 60.0
OPEN_S = 30.0
_PROBING_S = 1.0  # when to ask again while another request is finding out


@dataclass(slots=True, weakref_slot=True, eq=False)
class Circuit:
    """Opens after 5 failures within 60 s, for 30 s. Times are seconds of the clock of those who share it."""

    open_until: float | None = None
    last_error: str = ""
    is_probing: bool = False
    _failed_at: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))

    def is_blocked(self, now: float) -> bool:
        """Whether nobody may ask now."""
        return self.open_until is not None and (self.is_probing or now < self.open_until)

    def wait_s(self, now: float) -> float:
        """Seconds after which it is worth looking again."""
        return max((self.open_until or 0.0) - now, _PROBING_S if self.is_probing else 0.0)

    def count(self, now: float, *, is_probe: bool) -> None:
        """The endpoint has failed once more."""
        self._failed_at.append(now)
        is_often = len(self._failed_at) == FAILURES and now - self._failed_at[0] <= WITHIN_S
        if is_probe or (is_often and self.open_until is None):
            self.open_until = now + OPEN_S

    def close(self) -> None:
        """The endpoint answers again."""
        self.open_until = None
        self._failed_at.clear()


def circuit_of(identity: str) -> Circuit:
    """The circuit of the endpoint of that identity, the same for all who hold one."""
    return _CIRCUITS.setdefault(identity, Circuit())


_CIRCUITS: WeakValueDictionary[str, Circuit] = WeakValueDictionary()
