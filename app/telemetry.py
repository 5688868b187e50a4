"""Prometheus metrics, fed from the ledger's rows (ALERTS: names of telemetry).

The registry is the application's own, so that two applications in one process do not mix. Labels
are few: never a session, a response, a key or a fingerprint. Ratios are left to the reader.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from app.ledger.conditions import SUCCEEDED, cache_class_of
from app.ledger.journal.journal import JournalState
from app.ledger.probe import Reading
from app.ledger.rows import TurnRow
from app.ledger.writer import WriterState
from app.tasks import describe
from engine.model import Kind, Reason, Status

logger = logging.getLogger(__name__)

CONTENT_TYPE = CONTENT_TYPE_LATEST
MODELS = 100
"""Different models that get a label of their own. Clients choose the name of a model, so without
a bound one of them could fill the memory of the scraper."""
OTHER = "other"
UNKNOWN = "unknown"
CONTINUATION = {
    "requests": "Generation turns that were sent upstream.",
    "continuations": "Turns that Warmline continued.",
    "delta_items": "Items that continued turns sent.",
    "full_items": "Items that the same turns would have sent in full.",
    "fallbacks": "Turns whose continuation or storage was rejected, and that went once more.",
    "errors": "Turns that failed or were refused by the upstream.",
}
FALLBACKS = frozenset(
    {Reason.PREVIOUS_RESPONSE_NOT_FOUND, Reason.STORE_UNSUPPORTED, Reason.CONNECTION_LOST}
)
TTFT_BUCKETS = (
    0.05,
    0.1,
    0.2,
    0.3,
    0.5,
    0.75,
    1.0,
    1.5,
    2.0,
    3.0,
    5.0,
    7.5,
    10.0,
    20.0,
    40.0,
    80.0,
)


_Counted: TypeAlias = defaultdict[tuple[Counter, tuple[str, ...]], int]
"""How much is to be added to each counter, by its labels."""


class Telemetry:
    """``observe`` is called with rows after they were written, from any thread."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        self._models: set[str] = set()
        self._lock = threading.Lock()
        self._requests = Counter(
            "warmline_requests",
            "Turns recorded, by how they were sent and why.",
            ("model", "transport", "mode", "reason", "status", "kind"),
            registry=self.registry,
        )
        self._eligible = Counter(
            "warmline_eligible_requests",
            "Generation turns that could have been continued: the mismatch rate's denominator.",
            ("model",),
            registry=self.registry,
        )
        self._mismatches = Counter(
            "warmline_mismatched_requests",
            "Eligible turns whose history was not what the provider holds.",
            ("model",),
            registry=self.registry,
        )
        self._input = Counter(
            "warmline_input_tokens",
            "Input tokens by class; the classes add up to the input.",
            ("model", "class"),
            registry=self.registry,
        )
        self._output = Counter(
            "warmline_output_tokens",
            "Output tokens by class; the classes add up to the output.",
            ("model", "class"),
            registry=self.registry,
        )
        self._usage_unknown = Counter(
            "warmline_usage_unknown_requests",
            "Generation turns of which the provider did not report this figure.",
            ("model", "field"),
            registry=self.registry,
        )
        self._ttft = Histogram(
            "warmline_time_to_first_token_seconds",
            "From receipt of a request to the first event with model output.",
            ("model", "mode", "cache"),
            buckets=TTFT_BUCKETS,
            registry=self.registry,
        )
        self._state: Callable[[], Iterable[tuple[str, int, int]]] = tuple
        self._continued = {
            name: Counter(
                f"warmline_continuation_{name}", text, ("upstream",), registry=self.registry
            )
            for name, text in CONTINUATION.items()
        }
        self._passed = Counter(
            "warmline_passed_requests",
            "Requests that were passed through and are no turns.",
            ("upstream", "code_class"),
            registry=self.registry,
        )
        self._deliveries = Counter(
            "warmline_webhook_deliveries",
            "Attempts to deliver a webhook, by what became of them.",
            ("receiver", "outcome"),
            registry=self.registry,
        )
        Gauge(
            "warmline_build_info", "1, with the version.", ("version",), registry=self.registry
        ).labels(version).set(1)

    def observe(self, rows: Iterable[TurnRow]) -> None:
        # Looking a label up takes as long as all else: once for those of many rows.
        counted: _Counted = defaultdict(int)
        seconds: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
        for row in rows:
            self._observe(row, counted, seconds)
        for (counter, labels), amount in counted.items():
            counter.labels(*labels).inc(amount)
        for labels, values in seconds.items():
            histogram = self._ttft.labels(*labels)
            for value in values:
                histogram.observe(value)

    def passed(self, upstream: str, status: int) -> None:
        """A request that was passed through, with the status that its client saw."""
        self._passed.labels(upstream, f"{status // 100}xx").inc()

    def watch_writer(self, state: Callable[[], WriterState | None]) -> None:
        """Show the ledger writer's own counters with each scrape; None while there is no writer."""
        self.registry.register(_WriterCollector(state))

    def watch_reading(self, state: Callable[[], Reading | None]) -> None:
        """Show with each scrape whether the ledger can be read; None while nothing probes it."""
        self.registry.register(_ReadingCollector(state))

    def watch_alerts(self, figures: Callable[[], Iterable[tuple[str, str, str, int]]]) -> None:
        """Show the alerts with each scrape: rule, severity, state, groups in that state."""
        self.registry.register(_AlertsCollector(figures))

    def watch_continuation(self, figures: Callable[[], Iterable[tuple[str, int, int]]]) -> None:
        """Show the engine's state with each scrape: upstream, unsupported bases, chains."""
        self._state = figures
        self.registry.register(_ContinuationCollector(figures))

    def continuation(self) -> Callable[[str], dict[str, int | None]]:
        """What ``warmline_continuation_*`` counts now, by the name of an upstream. None: unknown,
        for nothing is served yet."""
        state = {name: (bases, chains) for name, bases, chains in self._state()}
        counted = {
            (name, sample.labels["upstream"]): int(sample.value)
            for name, counter in self._continued.items()
            for metric in counter.collect()
            for sample in metric.samples
            if sample.name.endswith("_total")
        }

        def of(upstream: str) -> dict[str, int | None]:
            bases, chains = state.get(upstream, (None, None))
            figures: dict[str, int | None] = {
                name: counted.get((name, upstream), 0) for name in self._continued
            }
            return figures | {"unsupported_bases": bases, "chains": chains}

        return of

    def delivered(self, receiver: str, outcome: str) -> None:
        """An attempt to deliver a webhook; ``outcome`` is one of a few words."""
        self._deliveries.labels(receiver, outcome).inc()

    def render(self) -> bytes:
        return generate_latest(self.registry)

    def _observe(
        self,
        row: TurnRow,
        counted: _Counted,
        seconds: defaultdict[tuple[str, ...], list[float]],
    ) -> None:
        model = self._model(row.model)
        mode = row.mode or UNKNOWN
        transport, reason = row.client_transport or UNKNOWN, row.reason or UNKNOWN
        counted[self._requests, (model, transport, mode, reason, row.status, row.kind)] += 1
        if row.kind == Kind.GENERATION and row.mode is not None:
            self._observe_continuation(row, counted)
        if row.kind != Kind.GENERATION or row.status not in SUCCEEDED:
            return
        if row.eligible and row.mode is not None:
            counted[self._eligible, (model,)] += 1
            if row.reason == "prefix_mismatch":
                counted[self._mismatches, (model,)] += 1
        self._observe_tokens(row, model, counted)
        if row.ttft_ms is not None:
            seconds[model, mode, cache_class_of(row)].append(row.ttft_ms / 1000)

    def _observe_continuation(self, row: TurnRow, counted: _Counted) -> None:
        continued, labels = self._continued, (row.upstream,)
        counted[continued["requests"], labels] += 1
        if row.status in (Status.FAILED, Status.ERROR, Status.RATE_LIMITED):
            counted[continued["errors"], labels] += 1
        if row.reason in FALLBACKS and (row.attempts or 0) > 1:
            counted[continued["fallbacks"], labels] += 1
        if row.reason == Reason.OK:
            counted[continued["continuations"], labels] += 1
            counted[continued["delta_items"], labels] += row.items_sent or 0
            counted[continued["full_items"], labels] += row.items_total or 0

    def _observe_tokens(self, row: TurnRow, model: str, counted: _Counted) -> None:
        given, cached, written = row.input_tokens, row.cached_tokens, row.cache_write_tokens
        if given is not None and cached is not None:
            rest = max(0, given - cached)
            part = min(written or 0, rest)
            counted[self._input, (model, "cached")] += min(cached, given)
            counted[self._input, (model, "cache_write")] += part
            counted[self._input, (model, "uncached")] += rest - part
        if row.output_tokens is not None:
            thought = min(row.reasoning_tokens or 0, row.output_tokens)
            counted[self._output, (model, "reasoning")] += thought
            counted[self._output, (model, "text")] += row.output_tokens - thought
        for field in ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens"):
            if getattr(row, field) is None:
                counted[self._usage_unknown, (model, field)] += 1

    def _model(self, model: str | None) -> str:
        if model is None:
            return UNKNOWN
        with self._lock:
            if model not in self._models and len(self._models) >= MODELS:
                return OTHER
            self._models.add(model)
        return model


class _ContinuationCollector(Collector):
    def __init__(self, figures: Callable[[], Iterable[tuple[str, int, int]]]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        bases = GaugeMetricFamily(
            "warmline_continuation_unsupported_bases",
            "Tenants for whom the upstream is taken not to keep responses.",
            labels=("upstream",),
        )
        chains = GaugeMetricFamily(
            "warmline_continuation_chains",
            "Answers that a turn could hang on now: latest ones of connections, and kept ones.",
            labels=("upstream",),
        )
        for upstream, unsupported, live in self._figures():
            bases.add_metric((upstream,), unsupported)
            chains.add_metric((upstream,), live)
        yield bases
        yield chains


class _WriterCollector(Collector):
    def __init__(self, state: Callable[[], WriterState | None]) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        state = self._state()
        if state is None:
            return
        for name, text, value in (
            ("warmline_ledger_rows_written", "Rows written to the ledger.", state.written),
            (
                "warmline_ledger_rows_dropped",
                "Rows lost: queue and journal were full.",
                state.dropped,
            ),
            ("warmline_ledger_rows_rejected", "Rows that the database refused.", state.rejected),
            (
                "warmline_ledger_write_errors",
                "Batches that failed and were tried again.",
                state.failures,
            ),
        ):
            yield CounterMetricFamily(name, text, value=value)
        for name, text, gauge in (
            ("warmline_ledger_queued_rows", "Rows that wait.", state.queued),
            (
                "warmline_ledger_rows_kept",
                "Of those that wait, rows that cannot be counted at present.",
                state.kept,
            ),
            (
                "warmline_ledger_rows_on_disk",
                "Of those that wait, rows in the journal only.",
                state.on_disk,
            ),
            (
                "warmline_ledger_retrying",
                "1 while the database does not take rows, which are tried again.",
                int(state.retrying),
            ),
            (
                "warmline_ledger_waiting_since_seconds",
                "Unix time since when rows wait and none is written; 0 where none waits.",
                (state.waiting_since or 0) / 1000,
            ),
        ):
            yield GaugeMetricFamily(name, text, gauge)
        if state.journal is not None:
            yield from _journal(state.journal)


def _journal(state: JournalState) -> Iterator[Metric]:
    for name, text, value in (
        (
            "warmline_journal_recovered",
            "Rows and turns under way that ended processes had left.",
            state.recovered + state.process_ended,
        ),
        ("warmline_journal_missed", "Records that the journal could not take.", state.missed),
        ("warmline_journal_torn", "Lines of the journal that could not be read.", state.torn),
    ):
        yield CounterMetricFamily(name, text, value=value)
    yield GaugeMetricFamily("warmline_journal_bytes", "Size of the journal.", state.bytes)


class _ReadingCollector(Collector):
    def __init__(self, state: Callable[[], Reading | None]) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        state = self._state()
        if state is not None:
            yield GaugeMetricFamily(
                "warmline_ledger_readable", "1 while the ledger can be read.", int(state.readable)
            )


class _AlertsCollector(Collector):
    def __init__(self, figures: Callable[[], Iterable[tuple[str, str, str, int]]]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "warmline_alerts",
            "Groups of a rule that are in a state.",
            labels=("rule", "severity", "state"),
        )
        try:
            for rule, severity, state, groups in self._figures():
                family.add_metric((rule, severity, state), groups)
        except Exception as error:
            # A database that is away takes the alerts from the metrics, and nothing else.
            logger.warning("alerts are missing in the metrics: %s", describe(error))
            return
        yield family
