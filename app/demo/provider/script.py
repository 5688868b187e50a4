"""When which fault strikes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from .faults import RequestFault, UpgradeFault
from .wire import Json


class Attempt(Protocol):
    """What a rule may look at: see ``log.Attempt``."""

    @property
    def index(self) -> int: ...
    @property
    def transport(self) -> str: ...
    @property
    def connection_index(self) -> int | None: ...
    @property
    def nth(self) -> int: ...
    @property
    def body(self) -> Json: ...


@dataclass(slots=True)
class _Upgrades:
    faults: tuple[UpgradeFault, ...]
    upgrade: int | None
    left: int | None


@dataclass(slots=True)
class _Requests:
    faults: tuple[RequestFault, ...]
    request: int | None
    connection: int | None
    nth: int | None
    transport: str | None
    when: Callable[[Attempt], bool] | None
    left: int | None

    def matches(self, attempt: Attempt) -> bool:
        return (
            self.left != 0
            and (self.request is None or self.request == attempt.index)
            and (self.connection is None or self.connection == attempt.connection_index)
            and (self.nth is None or self.nth == attempt.nth)
            and (
                self.transport is None
                or self.transport == attempt.transport
                or (self.transport == "http" and attempt.transport == "sse")
            )
            and (self.when is None or self.when(attempt))
        )


@dataclass
class Script:
    """Rules are tried in the order in which they were given; all that match apply."""

    _upgrades: list[_Upgrades] = field(default_factory=list)
    _requests: list[_Requests] = field(default_factory=list)

    def on_upgrade(
        self, *faults: UpgradeFault, upgrade: int | None = None, times: int | None = 1
    ) -> None:
        """At the upgrade with this index (0 is the first ever), or at the next ``times`` upgrades.

        ``times`` None: at every one.
        """
        self._upgrades.append(_Upgrades(faults, upgrade, times))

    def on_request(
        self,
        *faults: RequestFault,
        request: int | None = None,
        connection: int | None = None,
        nth: int | None = None,
        transport: str | None = None,
        when: Callable[[Attempt], bool] | None = None,
        times: int | None = 1,
    ) -> None:
        """At the next ``times`` requests that satisfy all that is given.

        ``request``: index in the provider's log; ``connection``: index of the connection;
        ``nth``: index of the request on its connection (over HTTP always 0);
        ``transport``: ``ws``, ``sse`` or ``http`` (which means both of the latter).
        """
        self._requests.append(_Requests(faults, request, connection, nth, transport, when, times))

    def clear(self) -> None:
        self._upgrades.clear()
        self._requests.clear()

    @property
    def pending(self) -> int:
        """Rules that wait for their last occasion; those without end are not counted."""
        rules: list[_Upgrades | _Requests] = [*self._upgrades, *self._requests]
        return sum(1 for rule in rules if rule.left)

    def for_upgrade(self, index: int) -> list[UpgradeFault]:
        out: list[UpgradeFault] = []
        for rule in self._upgrades:
            if rule.left != 0 and rule.upgrade in (None, index):
                rule.left = None if rule.left is None else rule.left - 1
                out += rule.faults
        return out

    def for_request(self, attempt: Attempt) -> list[RequestFault]:
        out: list[RequestFault] = []
        for rule in self._requests:
            if rule.matches(attempt):
                rule.left = None if rule.left is None else rule.left - 1
                out += rule.faults
        return out
