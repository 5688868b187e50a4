"""What the routes of the dashboard share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine
from starlette.requests import Request

from app.alerts.service import Alerts
from app.clock import Clock
from app.errors import AppError
from app.gateway.resets import Reset
from app.importers.service import Importing
from app.keys import Keys
from app.ledger.filters import Filter, parse
from app.ledger.probe import NO_ANSWER, Reading
from app.ledger.rows import iso, to_ms
from app.ledger.writer import WriterState
from app.settings import Settings
from app.telemetry import Telemetry
from app.web.access import Tickets
from app.web.assets import Assets
from app.web.live import Hub

Received = Callable[[], Sequence[Mapping[str, Any]]]
"""Messages as ``/api/alerts/received`` shows them, newest first. Called in a worker thread."""


def ledger_unavailable() -> AppError:
    """Made anew each time: an error that is raised again keeps the frames of all times before."""
    return AppError(
        "ledger_unavailable",
        "The ledger cannot be read at the moment.",
        "Turns are served all the same. Check the database and try again.",
        status=503,
    )


def ledger_not_open() -> AppError:
    return AppError("not_ready", "The ledger is not open.", "Try again shortly.", status=503)


@dataclass
class Web:
    clock: Clock
    hub: Hub
    assets: Assets
    tickets: Tickets
    telemetry: Telemetry
    engine: Engine | None = None
    """Open between the service's start and its end."""
    writer_state: Callable[[], WriterState] | None = field(default=None)
    reading: Callable[[], Reading] | None = None
    """What the probe of the ledger knows; None where nothing probes it."""
    keys: Keys | None = None
    """The ledger's, from the service's start on."""
    alerts: Alerts | None = None
    """At work between the service's start and its end."""
    importing: Importing | None = None
    """At work between the service's start and its end."""
    reset_epoch: Callable[[str, str], Reset | None] | None = None
    """The gateway's, while it serves: resets a session by its key, with a reason. On its loop."""
    settings: Settings | None = None
    received: Received | None = None
    """What the demo's own receiver got; None where there is no such receiver."""

    @property
    def ledger(self) -> Engine:
        if self.engine is None:
            raise ledger_not_open()
        self._refuse_silence()
        return self.engine

    @property
    def pseudonym(self) -> Callable[[str], str]:
        """What stands for a name that a client chose, as with the setting ``pseudonymize``."""
        if self.keys is None:
            raise ledger_not_open()
        return self.keys.pseudonym

    @property
    def silent(self) -> bool:
        """The database neither answers nor refuses: whoever asks it waits, and soon all threads
        that answer pages do."""
        return self.reading is not None and self.reading().error == NO_ANSWER

    def firing(self) -> Iterable[tuple[str, str, str, int]]:
        """Alerts for ``Telemetry.watch_alerts``; none while they cannot be asked for."""
        return () if self.alerts is None or self.silent else self.alerts.figures()

    def _refuse_silence(self) -> None:
        if self.silent:
            raise ledger_unavailable()

    @property
    def alerting(self) -> Alerts:
        if self.alerts is None:
            raise AppError("not_ready", "Alerts are not at work.", "Try again shortly.", status=503)
        self._refuse_silence()
        return self.alerts

    @property
    def in_force(self) -> Settings:
        if self.settings is None:
            raise AppError("not_ready", "There are no settings here.", None, status=503)
        return self.settings

    @property
    def imports(self) -> Importing:
        if self.importing is None:
            raise ledger_not_open()
        return self.importing

    def view(self, request: Request, *, also: Iterable[str] = ()) -> Filter:
        """The filter of a request; ``also`` names the parameters that are the route's own."""
        return parse(request.query_params.multi_items(), now=self.clock.now(), also=also)

    def frame(self, view: Filter) -> dict[str, Any]:
        """What every figure says of itself: when it was read, and of which time it tells."""
        return {
            "as_of": iso(to_ms(self.clock.now())),
            "range": {
                "from": iso(view.start),
                "to": iso(view.end),
                "tz": view.tz,
                "by": view.by,
            },
        }
