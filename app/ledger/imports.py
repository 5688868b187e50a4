"""Taking rows from elsewhere into the ledger, once, and giving them back.

A row is known by its ``turn_id``; of what was taken a key stays (``import_keys``) when the row is
gone. A record is passed over

- as *known*, where its row is in the ledger (one of another tool's log may learn something by it,
  ``app.ledger.joining``);
- as *deleted*, where it was taken and its row is no longer kept: what it added to the sums stays;
- as *purged*, where its row was purged, unless it is asked for again;
- as *too old*, where it started before the time whose rows are kept (retention): nothing tells
  whether the sums of that time count it already.

Each batch is one short transaction that holds rows, keys and counts, so that an import that is
interrupted anywhere and run again leaves the ledger that one run leaves.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, Engine, Update, delete, func, select, update

from app.errors import AppError
from app.ledger import import_files, merging, store
from app.ledger.database import WRITES
from app.ledger.models import import_keys, imports, merged_records, turns
from app.ledger.rollups import tables as rollups
from app.ledger.rollups.among import text
from app.ledger.rollups.contribution import ANY

RUNNING, DONE, INTERRUPTED = "running", "done", "interrupted"
UNDOING, UNDONE = "undoing", "undone"
DELETED = "was taken before, and its row is no longer kept"
PURGED = "was purged from this ledger"
TOO_OLD = "is from before the time whose rows this ledger keeps"
_NAMES_LIMIT = 512

c, k, i, m = turns.c, import_keys.c, imports.c, merged_records.c


@dataclass(slots=True)
class Counts:
    """What became of the records so far."""

    new: int = 0
    known: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """By reason."""

    def add(self, other: Counts) -> None:
        self.new += other.new
        self.known += other.known
        self.skipped.update(other.skipped)


@dataclass(frozen=True, slots=True)
class Import:
    """One run of an import; the columns of the table."""

    id: str
    started_at: int
    ended_at: int | None
    state: str
    names: str
    formats: str
    rows_new: int
    rows_known: int
    skipped: int
    reasons: dict[str, int]


@dataclass(frozen=True, slots=True)
class Span:
    """The rows of an import that are in the ledger."""

    rows: int
    first: int
    """When the first of them started, in epoch ms."""
    last: int
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Undone:
    rows: int
    """Rows that were taken away, with all that they had added."""
    kept: int
    """Rows that were no longer there: what they had added to the sums stays."""
    parted: int = 0
    """Records that were one row with a gateway's, which is as it was before."""


def begin(engine: Engine, import_id: str, now: int, names: Sequence[str]) -> None:
    """Leave a record of an import that begins at ``now`` (epoch ms)."""
    values = {
        "id": import_id,
        "started_at": now,
        "ended_at": None,
        "state": RUNNING,
        "names": _shortened(names),
        "formats": "",
        **_columns(Counts()),
    }
    with engine.execution_options(**WRITES).begin() as connection:
        connection.execute(imports.insert().values(values))


def note(connection: Connection, import_id: str, counts: Iterable[Counts]) -> None:
    """Keep what has become of the records of an import so far. Raises ``AppError`` where it was
    undone meanwhile."""
    whole = Counts()
    for one in counts:
        whole.add(one)
    if not connection.execute(_going_on(import_id).values(_columns(whole))).rowcount:
        raise AppError("undone", f"The import {import_id} was undone meanwhile: it ends here.")


def finish(
    engine: Engine,
    import_id: str,
    state: str,
    *,
    now: int | None,
    counts: Counts,
    formats: Sequence[str],
) -> None:
    """Close the record of an import that nobody has undone: ``DONE`` or ``INTERRUPTED``; or say how
    far it is: ``RUNNING``, with no ``now``."""
    values = {"state": state, "ended_at": now, "formats": ",".join(formats), **_columns(counts)}
    with engine.execution_options(**WRITES).begin() as connection:
        connection.execute(_going_on(import_id).values(values))


def _going_on(import_id: str) -> Update:
    return update(imports).where(i.id == import_id, i.state.not_in([UNDOING, UNDONE]))


def listed(engine: Engine, limit: int = 20) -> list[Import]:
    """The newest imports, newest first."""
    query = select(imports).order_by(i.started_at.desc(), i.id).limit(limit)
    with engine.connect() as connection:
        return [_import(found) for found in connection.execute(query)]


def one(engine: Engine, import_id: str) -> Import:
    """One import. Raises ``AppError`` where there is none of this id."""
    with engine.connect() as connection:
        found = connection.execute(select(imports).where(i.id == import_id)).one_or_none()
    if found is None:
        raise AppError(
            "no_import",
            f"There is no import {import_id[:64]!r}.",
            "List them with: warmline import --list",
            status=404,
        )
    return _import(found)


def span(engine: Engine, import_id: str) -> Span | None:
    """Where the rows of an import are to be found; None where it has none."""
    query = (
        select(c.source, func.count(), func.min(c.started_at), func.max(c.started_at))
        .where(c.import_id == import_id)
        .group_by(c.source)
        .order_by(c.source)
    )
    with engine.connect() as connection:
        found = connection.execute(query).all()
    if not found:
        return None
    sources, rows, first, last = zip(*found, strict=True)
    return Span(sum(rows), min(first), max(last), sources)


def interrupted(engine: Engine, import_ids: Sequence[str], now: int) -> None:
    """Say of imports whose process is no more that they were interrupted, if they ran."""
    if import_ids:
        ran = i.id.in_(import_ids) & (i.state == RUNNING)
        values = {"state": INTERRUPTED, "ended_at": now}
        with engine.execution_options(**WRITES).begin() as connection:
            connection.execute(update(imports).where(ran).values(values))


def undo(
    engine: Engine,
    import_id: str,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Undone:
    """Take away what an import has added: its rows, and their part in every sum.

    It takes nothing more, if it still runs. Rows that were there before it stay. What was taken
    may be imported again, except for rows that retention has deleted meanwhile, which the sums
    still count. May be broken off and repeated. Raises ``AppError`` where there is no such import.
    """
    one(engine, import_id)
    mine = c.import_id == import_id
    writing = engine.execution_options(**WRITES)
    with engine.connect() as connection:
        total = sum(
            connection.execute(select(func.count()).where(added)).scalar_one()
            for added in (mine, m.import_id == import_id)
        )
    removed = last = parted = 0
    _mark(writing, import_id, UNDOING)
    progress(0, total)
    while True:
        with writing.begin() as connection:
            ids = merging.part(connection, m.import_id == import_id, keep=False)
            parted += len(ids)
            if not ids:
                query = select(c.id, c.turn_id, c.session).where(mine, c.id > last).order_by(c.id)
                found = connection.execute(query.limit(store.AT_ONCE)).all()
                if not found:
                    break
                last, ids = found[-1].id, [row.turn_id for row in found]
                removed += store.delete_rows(connection, c.id.in_([row.id for row in found]))
                merging.mark(connection, {row.session for row in found})
            keys = k.key.in_([key_of(turn_id) for turn_id in ids])
            connection.execute(delete(import_keys).where(k.import_id == import_id, keys))
            import_files.forget(connection)
        progress(min(removed + parted, total), total)
    merging.part_orphans(engine)
    merging.merge_waiting(engine)
    _mark(writing, import_id, UNDONE)
    with engine.connect() as connection:
        kept = connection.execute(
            select(func.count()).select_from(import_keys).where(k.import_id == import_id)
        ).scalar_one()
    return Undone(removed, kept, parted)


def _mark(writing: Engine, import_id: str, state: str) -> None:
    with writing.begin() as connection:
        connection.execute(update(imports).where(i.id == import_id).values(state=state))


def bury(connection: Connection, turn_ids: Sequence[str]) -> None:
    """Leave keys of rows that are purged, whoever wrote them: no import brings them back."""
    _upsert_keys(connection, sorted({key_of(turn_id) for turn_id in turn_ids}), None)


def tenants_known(engine: Engine, tenants: Sequence[str]) -> set[str]:
    """Which of these tenants the ledger has, or had, rows of."""
    query = select(rollups.keys.c.tenant).where(rollups.keys.c.tenant.in_(tenants)).distinct()
    with engine.connect() as connection:
        return set(connection.execute(query).scalars())


def has_other_tenants(engine: Engine, tenants: Sequence[str]) -> bool:
    """Whether the ledger has, or had, rows of tenants other than these."""
    query = select(rollups.keys.c.id).where(rollups.keys.c.tenant.not_in([ANY, *tenants]))
    with engine.connect() as connection:
        return connection.execute(query.limit(1)).first() is not None


def key_of(turn_id: str) -> bytes:
    """What of a row outlives it: nothing can be read from it."""
    return blake2b(turn_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def keys_among(connection: Connection, keys: Collection[bytes]) -> dict[bytes, str | None]:
    """Those of these keys that are there, and which import has each."""
    if not keys:
        return {}
    marks = ", ".join("?" * len(keys))
    query = f"SELECT key, import_id FROM import_keys WHERE key IN ({marks})"  # noqa: S608
    found = connection.exec_driver_sql(text(connection, query), tuple(keys))
    return {bytes(key): import_id for key, import_id in found}


def put_keys(connection: Connection, keys: Iterable[bytes], import_id: str) -> set[bytes]:
    """Give keys to an import, and tell which: those that nobody has; a purged row's belongs to
    whoever takes it again."""
    # In one order: two imports of the same rows must not wait for each other in a circle.
    where = "WHERE import_keys.import_id IS NULL"
    return set(_upsert_keys(connection, sorted(keys), import_id, where))


def _upsert_keys(
    connection: Connection, keys: Sequence[bytes], import_id: str | None, where: str = ""
) -> list[bytes]:
    """Give keys to an import, or to nobody; those that are there only ``where`` that holds."""
    if not keys:
        return []
    # As the driver takes it: to make it anew for each batch would cost more than to run it.
    marks = ", ".join(["(?, ?)"] * len(keys))
    statement = (
        f"INSERT INTO import_keys (key, import_id) VALUES {marks} "  # noqa: S608  (our own)
        f"ON CONFLICT (key) DO UPDATE SET import_id = excluded.import_id {where} RETURNING key"
    )
    found = connection.exec_driver_sql(
        text(connection, statement),
        tuple(value for key in keys for value in (key, import_id)),
    )
    return [bytes(key) for key in found.scalars()]


def _columns(counts: Counts) -> dict[str, Any]:
    return {
        "rows_new": counts.new,
        "rows_known": counts.known,
        "skipped": counts.skipped.total(),
        "reasons": json.dumps(counts.skipped, sort_keys=True),
    }


def _shortened(names: Sequence[str]) -> str:
    text = ", ".join(names).encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
    return text if len(text) <= _NAMES_LIMIT else text[: _NAMES_LIMIT - 1] + "…"


def _import(found: Any) -> Import:
    values = dict(zip(i.keys(), found, strict=True))
    return Import(**{**values, "reasons": json.loads(found.reasons)})
