"""Runs as OpenTelemetry sees them while they go on: spans and figures, by its API alone.

Nothing is switched on here. An application that sets a provider gets spans and figures of every run from then on; in
one that does not, a run costs a look whether there is one, and an event a comparison with None. The spans are those of
`telling/spans.py`, with ids of the SDK's own. A run that is taken up again has a span for each time that it is driven,
with a link to the one span that an export makes of the run.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from surefoot import telemetry_names as names
from surefoot.types.events import Event
from surefoot.types.ports import Place, Recorded, RunJournal

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span

    from surefoot.telling.span_records import SpanRecord

T = TypeVar("T")

_LOG = logging.getLogger("surefoot")

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FINE_SECONDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_TOLD = (
    *(names.OPERATION, names.PROVIDER, names.REQUEST_MODEL, names.RESPONSE_MODEL),
    *(names.AGENT, names.TOOL, names.TOOL_TYPE, names.ERROR_TYPE),
)
"""The attributes of a span that its figures have too: those with few values."""


def has_provider() -> bool:
    """Whether the application has set a provider of spans or of figures; those that the API brings do nothing."""
    if "opentelemetry.trace" not in sys.modules:  # then nobody has, and it need not be loaded
        return False
    from opentelemetry import metrics, trace  # noqa: PLC0415  # an extra loads late

    return _is_real(trace.get_tracer_provider()) or _is_real(metrics.get_meter_provider())


def _is_real(provider: object) -> bool:
    return not type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))


def traced(headers: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """The headers of a request of ours, with its place in the trace; nothing else of the context leaves the house."""
    if not has_provider():
        return headers
    from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415  # as above

    told = dict(headers or {})
    tracecontext.TraceContextTextMapPropagator().inject(told)
    return told or None


def figure(name: Literal["queued", "waiting", "lost"], value: int) -> None:
    """So many runs more wait for a place, or fewer; so many wait for a person; so many leases were lost."""
    if has_provider() and (figures := _figures()) is not None:
        figures.own[name](value)


class _Figures:
    """The instruments of one meter provider."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter(names.SCOPE, schema_url=names.SCHEMA_URL)
        self.durations = {
            operation: meter.create_histogram(name, "s", explicit_bucket_boundaries_advisory=_SECONDS)
            for operation, name in names.DURATIONS.items()
        }
        self.tokens = {key: meter.create_counter(name, "{token}") for key, name in names.TOKENS.items()}
        self.driven = meter.create_up_down_counter("surefoot.runs.driven", "{run}")
        self.own = {
            "queued": meter.create_up_down_counter("surefoot.runs.queued", "{run}").add,
            "waiting": meter.create_gauge("surefoot.runs.waiting", "{run}").set,
            "lost": meter.create_counter("surefoot.lease.lost", "{lease}").add,
        }
        self.appended = meter.create_histogram(
            "surefoot.journal.append.duration", "s", explicit_bucket_boundaries_advisory=_FINE_SECONDS
        )

    def take(self, span: SpanRecord) -> None:
        told = {name: span.attributes[name] for name in _TOLD if name in span.attributes}
        operation = str(told.get(names.OPERATION, ""))
        if operation in self.durations and span.end_s is not None:
            self.durations[operation].record(span.end_s - span.start_s, told)
        if operation != names.CHAT:  # a run has the sums of its requests
            return
        for name, counter in self.tokens.items():
            if isinstance(tokens := span.attributes.get(name), int):
                counter.add(tokens, {**told, names.MODALITY: "unknown"})


_figures_of = cache(_Figures)


def _figures() -> _Figures | None:
    from opentelemetry import metrics  # noqa: PLC0415  # an extra loads late

    return _figures_of(provider) if _is_real(provider := metrics.get_meter_provider()) else None


class Live:
    """The spans of one run as long as it is driven. `prior` are its records from before that."""

    def __init__(self, prior: Sequence[Recorded]) -> None:
        from opentelemetry import context, trace  # noqa: PLC0415  # an extra loads late

        from surefoot.telling.span_records import nanoseconds  # noqa: PLC0415  # only a run that is watched pays for it
        from surefoot.telling.spans import Spans  # noqa: PLC0415

        self._trace, self._ns = trace, nanoseconds
        self._tracer = trace.get_tracer(names.SCOPE, schema_url=names.SCHEMA_URL)
        self._figures = _figures()
        self._around = context.get_current()
        self._spans = Spans(content=os.environ.get(names.CONTENT_VARIABLE, "").lower() in names.CONTENT_VALUES)
        self._begun: dict[str, Span] = {}
        self._since = 0.0
        self._is_again = bool(prior)
        for record in prior:
            self._spans.take(record)

    def take(self, event: Event) -> None:
        """Begin and end what begins and ends with an event that was just put on record. Never raises."""
        at = time.time()
        try:
            changes = self._spans.take(Recorded(self._spans.state.seen, at, "", event))
            if not self._since:
                self._since = at
                changes = [*self._spans.open.values(), *changes]
            for span in changes:
                self._show(span)
        except Exception:  # noqa: BLE001  # whatever an exporter of the application does cannot harm the run
            _LOG.exception("a %s could not be told to OpenTelemetry", type(event).__name__)

    async def inside(self, key: str, work: Awaitable[T]) -> T:
        """What `work` gives, done inside of the span that goes on under that key, so that its own spans lie there."""
        known = self._spans.open.get(key)
        span = self._begun.get(known.span_id) if known is not None else None
        if span is None:
            return await work
        with self._trace.use_span(span, record_exception=False, set_status_on_exception=False):
            return await work

    async def around(self, driven: Awaitable[T]) -> T:
        """What `driven` gives. All that is still open afterwards ends with it."""
        figures = self._figures
        if figures is not None:
            figures.driven.add(1)
        try:
            return await self.inside("run", driven)
        finally:
            if figures is not None:
                figures.driven.add(-1)
            for span in self._spans.close(time.time()):
                try:
                    self._show(span)
                except Exception:  # noqa: BLE001  # as in `take`
                    _LOG.exception("the end of %s could not be told to OpenTelemetry", span.name)

    def timed(self, journal: RunJournal) -> RunJournal:
        """The journal, whose appends are measured where somebody wants the figures."""
        figures = self._figures
        return journal if figures is None else cast("RunJournal", _Timed(journal, figures))  # all else is the journal's

    def _show(self, span: SpanRecord) -> None:
        """Tell of a span that begins or ends. One of an earlier drive that has ended is known already."""
        live = self._begun.get(span.span_id)
        if span.end_s is None:
            if live is None:
                self._begun[span.span_id] = self._start(span)
            return
        if live is None:
            if span.start_s < self._since:
                return
            live = self._start(span)
        live.set_attributes(span.attributes)
        for event in span.events:
            if event.at >= self._since:
                live.add_event(event.name, event.attributes, self._ns(event.at))
        if span.failed:
            live.set_status(self._trace.Status(self._trace.StatusCode.ERROR, span.message or None))
        live.end(self._ns(span.end_s))
        self._begun.pop(span.span_id, None)
        if self._figures is not None:
            since_s = max(span.start_s, self._since)  # what came before is told already
            self._figures.take(replace(span, start_s=since_s))

    def _start(self, span: SpanRecord) -> Span:
        trace, around = self._trace, self._begun.get(span.parent_id)
        context: Context = self._around if around is None else trace.set_span_in_context(around)
        own = [(span.trace_id, span.span_id)] if self._is_again and not span.parent_id else []
        places = (*span.links, *own)
        links = [trace.Link(trace.SpanContext(int(one, 16), int(other, 16), is_remote=True)) for one, other in places]
        kind = trace.SpanKind.CLIENT if span.kind == "client" else trace.SpanKind.INTERNAL
        start_s = max(span.start_s, self._since)
        return self._tracer.start_span(span.name, context, kind, span.attributes, links, self._ns(start_s))


class _Timed:
    """A journal whose appends are measured."""

    def __init__(self, journal: RunJournal, figures: _Figures) -> None:
        self._journal, self._figures = journal, figures

    def __getattr__(self, name: str) -> object:
        return getattr(self._journal, name)

    async def append(self, *given: Any, **more: Any) -> Place:  # Any: passed on as they are
        since_s = time.perf_counter()
        stands = await self._journal.append(*given, **more)
        self._figures.appended.record(time.perf_counter() - since_s)
        return stands
