"""Cedar policies as a policy of the gate; the package `cedarpy` is loaded when there are any (extra `cedar`).

The request: principal `User::"NAME"`, action `Action::"EFFECT"` ("unknown" when nobody can tell), resource
`Tool::"NAME"`; its context holds `server`, `arguments`, `origins` by the path of a value, and `counts`, the started
calls of the run by effect and in `total`. No permit, a forbid, and whatever cannot be evaluated is a refusal; a forbid
that is annotated with `@ask` is a question. Source: spec/guard.md, section 4.10; Cedar: cedarpolicy.com.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import cast

from surefoot.core.gate.asked import Asked, Word
from surefoot.types.errors import ConfigError, extra_needed

_LARGEST = 2**63
_DECIMALS = 4
"""Digits behind the point that a decimal of Cedar has."""


def cedar(call: Asked) -> Sequence[Word]:
    """What the Cedar policies of the configuration say against a call."""
    if not call.known.config.cedar:
        return ()
    try:
        firm, whole = _parsed(call.known.config.cedar)
        is_allowed, why = _asked_of(firm, call)
        if not is_allowed:
            return (Word("cedar", "deny", "refused by a policy", why),)
        is_allowed, why = _asked_of(whole, call)
    except Exception as error:  # noqa: BLE001  # what cannot be evaluated is refused
        return (Word("cedar", "deny", "refused: a policy could not be evaluated", str(error)),)
    return () if is_allowed else (Word("cedar", "ask", "a policy wants a person's word", why, is_firm=True),)


def check_cedar(text: str) -> None:
    """Raise `ConfigError` unless a text is Cedar policies that can be used here."""
    try:
        _parsed(text)
        if not text.strip():
            raise ValueError("it holds no policy, so nothing would be permitted")  # noqa: TRY301  # told as the others are
    except ImportError as error:
        raise ConfigError("cedar", "…", f"Cedar policies need the package cedarpy; {extra_needed('cedar')}") from error
    except ValueError as error:
        raise ConfigError("cedar", "…", f"this is no Cedar: {error}") from error


@lru_cache(maxsize=16)
def _parsed(text: str) -> tuple[str, str]:
    """The policies without the forbids that only ask, and all of them."""
    import cedarpy  # noqa: PLC0415  # of an extra

    told = json.loads(cedarpy.policies_to_json_str(text))
    policies = cast("dict[str, dict[str, object]]", told["staticPolicies"])
    kept = {name: policy for name, policy in policies.items() if not _only_asks(policy)}
    return cedarpy.policies_from_json_str(json.dumps({**told, "staticPolicies": kept})), text


def _only_asks(policy: Mapping[str, object]) -> bool:
    annotations = cast("Mapping[str, object]", policy.get("annotations", {}))  # JSON
    return policy["effect"] == "forbid" and "ask" in annotations


def _asked_of(policies: str, call: Asked) -> tuple[bool, str]:
    """Whether the policies allow the call, and which decided. Raises `ValueError` where one cannot be evaluated."""
    import cedarpy  # noqa: PLC0415  # of an extra

    request = {
        "principal": {"type": "User", "id": call.known.config.user},
        "action": {"type": "Action", "id": call.aim.effect.effect or "unknown"},
        "resource": {"type": "Tool", "id": call.spec.name},
        "context": _context(call),
    }
    result = cedarpy.is_authorized(request, policies, [])  # pyright: ignore[reportUnknownMemberType]  # it takes any dict
    if result.diagnostics.errors:
        raise ValueError("; ".join(result.diagnostics.errors))
    reasons = ", ".join(result.diagnostics.reasons)
    return result.decision == cedarpy.Decision.Allow, f"policy {reasons}" if reasons else "no policy permits it"


def _context(call: Asked) -> dict[str, object]:
    counts = Counter(effect or "unknown" for one in call.started for effect in one.effects)
    return {
        "server": call.spec.server,
        "arguments": _value(call.arguments),
        "origins": {e.path: e.origin for e in call.aim.evidence},
        "counts": {**counts, "total": len(call.started)},
    }


def _value(value: object) -> object:
    """A JSON value as Cedar knows it: no null, a fraction as a decimal.

    Raises `ValueError` for a number that Cedar has not, and for a key that Cedar would take for another kind of value.
    """
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, object]", value)  # JSON: the keys are text
        if "__extn" in entries or "__entity" in entries or "__expr" in entries:
            raise ValueError("an argument has a key of Cedar's own")
        return {key: _value(one) for key, one in entries.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_value(one) for one in cast("Sequence[object]", value) if one is not None]
    if isinstance(value, float):
        return _decimal(Decimal(str(value)))
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        raise ValueError("a number is too large for Cedar")
    return value


def _decimal(value: Decimal) -> object:
    if not value.is_finite() or round(value, _DECIMALS) != value:
        raise ValueError("a number has more digits than Cedar has")
    if value == value.to_integral_value():
        return _value(int(value))
    return {"__extn": {"fn": "decimal", "arg": f"{value:f}"}}
