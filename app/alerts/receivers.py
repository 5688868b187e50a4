"""Who is told: the receivers of the settings file and those made on the page.

Those of the page lie in the database, their address and secrets sealed. Of those in the file only
what is learned about them is kept there: that one is disabled, and why. All calls block (the
database, files, and name servers where an address is checked): call them from a worker thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from app.alerts import endpoints
from app.alerts import receiver_entries as entries
from app.alerts.endpoints import (
    ADDRESS_UNREADABLE,
    SECRET_UNREADABLE,
    Endpoint,
    Kind,
)
from app.alerts.guard import Guard
from app.alerts.receiver_file import FileReceiver
from app.alerts.sealed import Seal, SealBrokenError
from app.alerts.tables import receivers as table
from app.clock import Clock
from app.errors import AppError, SettingsError
from app.ledger.database import WRITES
from app.ledger.rows import to_ms

FILE, PAGE = "file", "page"
MOST = 200
"""Receivers made on the page."""
LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Receiver:
    """What may be known of a receiver."""

    id: str
    name: str
    origin: str
    """``file`` or ``page``."""
    kind: Kind
    shown: str
    """Scheme, host and port of its address."""
    disabled: str | None
    """Why nothing is sent to it; None while it is in use."""
    version: int
    """Grows with every edit."""
    secrets: int | None
    """How many are valid now; None where the key file does not fit."""

    @property
    def signed(self) -> bool:
        """Whether what it gets is signed."""
        return self.secrets != 0


class Receivers:
    """``environ`` is read whenever something is sent."""

    def __init__(
        self,
        engine: Engine,
        seal: Seal,
        guard: Guard,
        file_receivers: Iterable[FileReceiver] = (),
        *,
        environ: Mapping[str, str],
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        self._reading = engine
        self._writing = engine.execution_options(**WRITES)
        self._seal = seal
        self._guard = guard
        self._files = {receiver.id: receiver for receiver in file_receivers}
        self._environ = environ
        self._clock = clock
        self._new_id = new_id

    # Reading

    def all(self) -> list[Receiver]:
        """By name."""
        with self._reading.connect() as connection:
            rows = {row.id: row for row in connection.execute(select(table))}
        found = [self._of_file(one, rows.get(one.id)) for one in self._files.values()]
        found += [self._of_page(row) for row in rows.values() if row.origin == PAGE]
        return sorted(found, key=lambda receiver: (receiver.name, receiver.id))

    def get(self, id: str) -> Receiver | None:  # noqa: A002
        return next((one for one in self.all() if one.id == id), None)

    def by_name(self, name: str) -> Receiver | None:
        return next((one for one in self.all() if one.name == name), None)

    def require(self, id: str) -> Receiver:  # noqa: A002
        """Raises ``AppError``: ``not_found``, 404."""
        found = self.get(id)
        if found is None:
            raise entries.not_found()
        return found

    def endpoint(self, id: str) -> Endpoint:  # noqa: A002
        """The address and the secrets as they are now.

        Raises ``UnreadableError`` (its ``outcome`` is for the delivery log),
        ``AddressRefusedError``, and ``AppError`` with code ``not_found``.
        """
        if id in self._files:
            return self._files[id].endpoint(self._guard, self._environ)
        row = self._row(id)
        url = self._url_of(row)
        shown = self._guard.check_url(url).shown
        return Endpoint(url, self._secrets_of(row), Kind(row.kind), shown)

    def check(self, id: str) -> Receiver:  # noqa: A002
        """That a message could be sent now, as far as the address goes: before a test."""
        self._guard.check(self.endpoint(id).url)
        return self.require(id)

    # Writing

    def start(self) -> None:
        """That no receiver of the page has the name of one in the file. Raises
        ``SettingsError``.
        """
        names = {receiver.name: receiver for receiver in self._files.values()}
        with self._reading.connect() as connection:
            for row in connection.execute(select(table.c.name).where(table.c.origin == PAGE)):
                if row.name in names:
                    raise SettingsError(
                        f"{names[row.name].place} has the name of a receiver that was made on the "
                        "page.",
                        "Rename the table; or start once without it, and delete the other one.",
                    )

    def create(self, name: str, kind: str, url: str, secrets: Sequence[str] = ()) -> Receiver:
        """One of the page. ``url`` and ``secrets`` (newest first) are texts or ``env:NAME``."""
        values = {
            "name": entries.name(name),
            "kind": entries.kind(kind),
            **self._address(url),
            **self._sealed_secrets(entries.kind(kind), secrets),
        }
        now = self._now()
        id = self._new_id()  # noqa: A001
        with self._saving(values["name"]) as connection:
            pages = select(func.count()).select_from(table).where(table.c.origin == PAGE)
            if connection.execute(pages).scalar_one() >= MOST:
                raise AppError(
                    "too_many", f"There are {MOST} receivers already.", "Delete one.", status=409
                )
            connection.execute(
                insert(table).values(
                    id=id, origin=PAGE, version=1, created_at=now, updated_at=now, **values
                )
            )
        return self.require(id)

    def update(
        self,
        id: str,  # noqa: A002
        *,
        name: str | None = None,
        kind: str | None = None,
        url: str | None = None,
        secrets: Sequence[str] | None = None,
        add_secret: str | None = None,
        retire_old_secret: bool = False,
        version: int | None = None,
    ) -> Receiver:
        """Change what is given; the rest stays.

        A secret is rotated by ``add_secret`` (it comes first, the one that was first is kept) and,
        when the receiver knows it, ``retire_old_secret``. With ``version`` the change is refused
        (``conflict``) if someone else made one since.
        """
        row = self._page_row(id)
        if version is not None and version != row.version:
            raise entries.conflict()
        if (secrets is not None) + (add_secret is not None) + retire_old_secret > 1:
            raise entries.refused("give one of secrets, add_secret and retire_old_secret")
        values: dict[str, Any] = {}
        if name is not None:
            values["name"] = entries.name(name)
        if url is not None:
            values |= self._address(url)
        kept = Kind(row.kind) if kind is None else entries.kind(kind)
        values["kind"] = kept
        if add_secret is not None:
            secrets = [add_secret, *self._opened(row)[:1]]
        elif retire_old_secret:
            old = self._opened(row)
            if len(old) < 2:
                raise entries.refused("there is no old secret to retire")
            secrets = old[:1]
        if secrets is not None:
            values |= self._sealed_secrets(kept, secrets)
        elif kept != row.kind:
            entries.check_count(kept, len(self._opened(row)))
        with self._saving(values.get("name", row.name), but=id) as connection:
            changed = connection.execute(
                update(table)
                .where(table.c.id == id, table.c.version == row.version)
                .values(**values, version=row.version + 1, updated_at=self._now())
            )
            if changed.rowcount == 0:
                raise entries.conflict()
        return self.require(id)

    def delete(self, id: str) -> None:  # noqa: A002
        """What was to be sent to it stays in the list of deliveries, and is given up when due."""
        self._page_row(id)
        with self._writing.begin() as connection:
            connection.execute(delete(table).where(table.c.id == id))

    def enable(self, id: str) -> Receiver:  # noqa: A002
        """Use it again. Its version grows: whoever was about to disable it meant an older one."""
        self.require(id)
        with self._writing.begin() as connection:
            connection.execute(
                update(table)
                .where(table.c.id == id, table.c.disabled.is_not(None))
                .values(disabled=None, version=table.c.version + 1, updated_at=self._now())
            )
        return self.require(id)

    def disable(self, id: str, why: str) -> None:  # noqa: A002
        """``why`` is shown. One that is gone is left alone."""
        now = self._now()
        values = {"disabled": why[:LONGEST_REASON], "updated_at": now}
        statement = update(table).where(table.c.id == id).values(**values)
        known = self._files.get(id)
        try:
            with self._writing.begin() as connection:
                if connection.execute(statement).rowcount == 0 and known is not None:
                    columns = {"name": known.name, "kind": known.kind, "shown": known.shown}
                    connection.execute(
                        insert(table).values(
                            id=id, origin=FILE, version=1, created_at=now, **columns, **values
                        )
                    )
        except IntegrityError:  # another process did so first, or its page took the name
            with self._writing.begin() as connection:
                connection.execute(statement)

    # Below

    def _now(self) -> int:
        return to_ms(self._clock.now())

    @contextmanager
    def _saving(self, name: str, but: str | None = None) -> Iterator[Connection]:
        """A transaction that gives a receiver this name."""
        if any(receiver.name == name for receiver in self._files.values()):
            raise entries.taken(name)
        try:
            with self._writing.begin() as connection:
                for row in connection.execute(
                    select(table.c.id, table.c.origin).where(table.c.name == name)
                ).all():
                    if row.origin == PAGE and row.id != but:
                        raise entries.taken(name)
                # One that the file once had, and has no more, does not keep its name.
                connection.execute(
                    delete(table).where(table.c.name == name, table.c.origin == FILE)
                )
                yield connection
        except IntegrityError:  # another process was quicker
            raise entries.taken(name) from None

    def _of_file(self, known: FileReceiver, row: Any) -> Receiver:
        return Receiver(
            id=known.id,
            name=known.name,
            origin=FILE,
            kind=known.kind,
            shown=known.shown,
            disabled=None if row is None else row.disabled,
            version=1 if row is None else row.version,
            secrets=len(known.secrets),
        )

    def _of_page(self, row: Any) -> Receiver:
        secrets: int | None
        try:
            secrets = len(self._opened(row))
        except SealBrokenError:
            secrets = None
        return Receiver(
            id=row.id,
            name=row.name,
            origin=PAGE,
            kind=Kind(row.kind),
            shown=row.shown,
            disabled=row.disabled,
            version=row.version,
            secrets=secrets,
        )

    def _row(self, id: str) -> Any:  # noqa: A002
        with self._reading.connect() as connection:
            row = connection.execute(
                select(table).where(table.c.id == id, table.c.origin == PAGE)
            ).one_or_none()
        if row is None:
            raise entries.not_found()
        return row

    def _page_row(self, id: str) -> Any:  # noqa: A002
        known = self._files.get(id)
        if known is not None:
            raise AppError(
                "read_only",
                f"The receiver {known.name} is in the settings file.",
                f"Change {known.place}, and start again.",
                status=409,
            )
        return self._row(id)

    def _address(self, url: Any) -> dict[str, Any]:
        """Its columns, once it is found usable."""
        written, address = entries.address(url, self._environ)
        return {"address": self._seal.seal(written), "shown": self._guard.check(address).shown}

    def _sealed_secrets(self, kind: Kind, secrets: Any) -> dict[str, Any]:
        written = entries.secrets(kind, secrets, self._environ)
        return {"secrets": self._seal.seal(json.dumps(written)) if written else None}

    def _opened(self, row: Any) -> list[str]:
        """The secrets as they were written. Raises ``SealBrokenError``."""
        if row.secrets is None:
            return []
        found: list[str] = json.loads(self._seal.open(row.secrets))
        return found

    def _url_of(self, row: Any) -> str:
        try:
            written = self._seal.open(row.address)
            return endpoints.read(written, "url", self._environ, files=False)
        except (SealBrokenError, ValueError) as error:
            raise entries.unreadable(ADDRESS_UNREADABLE, row.name, error) from None

    def _secrets_of(self, row: Any) -> tuple[str, ...]:
        try:
            return endpoints.read_secrets(self._opened(row), self._environ, files=False)
        except (SealBrokenError, ValueError) as error:
            raise entries.unreadable(SECRET_UNREADABLE, row.name, error) from None
