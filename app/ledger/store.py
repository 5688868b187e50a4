"""The one module that writes to ``turns``. Each change takes the rollups along in its transaction,
and lets turns wait for a new verdict whose old one it has taken the ground from.

All functions are called within a transaction that writes (``database.WRITES``). Locks are taken in
one order: rows, the state of the rollups, their sums, and the sums of breaks last and at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    delete,
    func,
    or_,
    select,
    update,
)
from sqlalchemy import text as sql_text

from app.errors import LedgerError
from app.ledger import under_way
from app.ledger.break_groups import broken
from app.ledger.grounds import PRICED_BY, moved, shaken, with_ground
from app.ledger.inserting import insert_new
from app.ledger.models import UNPRICED, merged_records, turns
from app.ledger.rollups import apply, break_sums, lives, session_ends
from app.ledger.rollups import state as states
from app.ledger.rollups.among import among, parts, run, text
from app.ledger.rollups.broken import NEEDED, Broken
from app.ledger.rollups.contribution import Contributions
from app.ledger.rollups.rebuild import COUNTED
from app.ledger.rows import COLUMNS, TurnRow
from engine.model import Kind

c = turns.c
_columns = [c[name] for name in COLUMNS]
NOT_BUILT = LedgerError(
    "rollups_missing",
    "The ledger has rows that its rollups do not count yet.",
    "Count them with: warmline db rollup",
)
AT_ONCE = 500
"""Rows that are read before they are changed: values of a list in one statement.

Who shares PostgreSQL with others that write changes no more in one transaction: sums are locked in
the order of their keys within each of these parts only, and two that go on to another part may
wait for each other in a circle."""


class Price(NamedTuple):
    usd: Decimal | None
    """None: there is none."""
    note: str
    """Where it comes from, or why there is none."""


class Verdict(NamedTuple):
    """The columns of a verdict on the cache, which only the sums of breaks count."""

    verdict: str | None
    grade: str | None
    missed: int | None


LATE_MS = 3_600_000
"""Turns that take longer than that are not looked for among those that ended last."""
NO_VERDICT = Verdict(None, None, None)
_PRICING = tuple(dict.fromkeys((*COUNTED, *PRICED_BY)))


def insert_rows(connection: Connection, rows: Sequence[TurnRow]) -> list[TurnRow]:
    """Insert rows; one whose ``turn_id`` is there already is left alone. Returns the new ones."""
    new = insert_new(connection, rows)
    if new:
        breaks = Broken()
        breaks.add(new)
        _unsettle_after(connection, new, breaks)
        made = Contributions()
        made.add(new)
        _count(connection, made, new)
        break_sums.put(connection, breaks)
    return new


def update_rows(connection: Connection, rows: Sequence[TurnRow]) -> int:
    """Give rows other values, by ``turn_id``; returns how many of them there are.

    A verdict and a price that they have and whose ground changes are forgotten.
    """
    return sum(exchange(connection, some) for some in parts(rows, AT_ONCE))


def exchange(
    connection: Connection,
    changed: Sequence[TurnRow] = (),
    *,
    gone: Collection[str] = (),
    new: Sequence[TurnRow] = (),
) -> int:
    """Give rows other values, delete those with the ids ``gone`` and insert ``new`` ones; returns
    how many rows were changed. Not more than ``AT_ONCE`` in all: it is one part of the sums."""
    wanted = {row.turn_id: row for row in changed}
    locked = _locked(connection, c.turn_id.in_([*wanted, *gone]))
    deleted = [row for row in locked if row.turn_id not in wanted]
    old = [row for row in locked if row != wanted.get(row.turn_id, row)]
    after = [with_ground(row, wanted[row.turn_id]) for row in old]
    if after:
        connection.execute(
            update(turns).where(c.turn_id == bindparam("of_turn")),
            [
                dict(zip(COLUMNS, row.values(), strict=True)) | {"of_turn": row.turn_id}
                for row in after
            ],
        )
    if deleted:
        connection.execute(delete(turns).where(c.turn_id.in_([row.turn_id for row in deleted])))
    inserted = insert_new(connection, new) if new else []
    touched = [*after, *deleted, *inserted]
    if touched:
        breaks = Broken()
        breaks.add([*old, *deleted], -1)
        breaks.add([*after, *inserted])
        changes = list(zip(old, after, strict=True))
        under_way.disturb(connection, moved(changes))
        sessions = shaken(changes)
        _unsettle(connection, sessions | {row.session_key for row in deleted}, breaks)
        _unsettle_after(connection, inserted, breaks)
        made = Contributions()
        made.add([*old, *deleted], -1)
        made.add([*after, *inserted])
        _count(connection, made, touched, taken=True)
        break_sums.put(connection, breaks)
    return len(after)


def delete_rows(
    connection: Connection,
    condition: ColumnElement[bool],
    *,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Delete rows as if they had never been, also from the rollups; returns how many."""
    deleted = 0
    while old := _locked(connection, condition, limit=AT_ONCE):
        connection.execute(delete(turns).where(c.turn_id.in_([row.turn_id for row in old])))
        breaks = Broken()
        breaks.add(old, -1)
        _unsettle(connection, {row.session_key for row in old}, breaks)
        made = Contributions()
        made.add(old, -1)
        _count(connection, made, old, taken=True)
        break_sums.put(connection, breaks)
        deleted += len(old)
        if progress is not None:
            progress(deleted)
    return deleted


def put_verdicts(
    connection: Connection,
    verdicts: Mapping[str, Verdict],
    *,
    revised: Mapping[str, Verdict] = MappingProxyType({}),
) -> None:
    """Write verdicts on the cache, by ``turn_id``; ``revised`` ones only where there is one."""
    breaks = Broken()
    _put_verdicts(connection, verdicts, breaks, revised)
    _put_breaks(connection, breaks)


def _put_breaks(connection: Connection, breaks: Broken) -> None:
    if breaks.sums:
        # Who counts all breaks anew, or forgets keys that no sum has, is not to be overtaken.
        states.hold(connection, change=False)
        break_sums.put(connection, breaks)


def put_judged(
    connection: Connection,
    judged: Sequence[tuple[int, TurnRow, TurnRow]],
    revised: Mapping[str, Verdict],
) -> None:
    """Write verdicts on rows that this transaction has locked: the id of each, the row as it was
    read, and with its verdict. ``revised``: as ``put_verdicts``."""
    breaks = Broken()
    breaks.add((before for _, before, _ in judged), -1)
    breaks.add(after for _, _, after in judged)
    _update_verdicts(
        connection,
        [
            (number, Verdict(row.cache_verdict, row.cache_grade, row.missed_tokens))
            for number, _, row in judged
        ],
    )
    _put_verdicts(connection, {}, breaks, revised)
    _put_breaks(connection, breaks)


def _put_verdicts(
    connection: Connection,
    verdicts: Mapping[str, Verdict],
    breaks: Broken,
    revised: Mapping[str, Verdict] = MappingProxyType({}),
) -> None:
    """Without the sums: what they change by is added to ``breaks``."""
    wanted = {**revised, **verdicts}
    if not wanted:
        return
    which: ColumnElement[bool] = c.turn_id.in_(list(verdicts))
    if revised:
        judged = and_(c.turn_id.in_(list(revised)), c.cache_verdict.is_not(None))
        which = or_(which, judged)
    # In the order of their ids, as everybody locks rows.
    query = select(c.id, c.turn_id).where(which).order_by(c.id)
    found = connection.execute(query.with_for_update()).all()
    if found:
        ids = [row.id for row in found]
        breaks.add(_broken(connection, ids), -1)
        _update_verdicts(connection, [(row.id, wanted[row.turn_id]) for row in found])
        breaks.add(_broken(connection, ids))


def _update_verdicts(connection: Connection, verdicts: Iterable[tuple[int, Verdict]]) -> None:
    run(
        connection,
        "UPDATE turns SET cache_verdict = ?, cache_grade = ?, missed_tokens = ? WHERE id = ?",
        [(*verdict, number) for number, verdict in verdicts],
    )


def waits_for_price(connection: Connection) -> bool:
    """Whether any row does."""
    query = select(c.id).where(sql_text(UNPRICED)).limit(1)
    return connection.execute(query).first() is not None


def put_prices(connection: Connection, price: Callable[[TurnRow], Price]) -> int:
    """Price the newest rows that wait for it; returns how many these were. None before the rollups
    count all rows: they count what these cost.

    What ``price`` is given has the columns of ``PRICED_BY``.
    """
    state = apply.advance(connection, 0)
    if state.missing:
        return 0
    waits = sql_text(UNPRICED)
    query = select(c.id).where(waits).order_by(c.id.desc()).limit(AT_ONCE)
    ids = sorted(connection.execute(query).scalars())
    if not ids:
        return 0
    locked = select(c.id, *(c[name] for name in _PRICING)).where(c.id.in_(ids), waits)
    found = connection.execute(locked.order_by(c.id).with_for_update()).all()
    if not found:
        return len(ids)  # another process has priced them, and more may wait
    # As far as prices and sums are concerned, they are rows.
    prices = [price(cast("TurnRow", row)) for row in found]
    connection.exec_driver_sql(
        text(connection, "UPDATE turns SET cost_usd = ?, price_note = ? WHERE id = ?"),
        [
            (None if one.usd is None else str(one.usd), one.note, row.id)
            for row, one in zip(found, prices, strict=True)
        ],
    )
    made = Contributions()
    made.add_prices(
        (cast("TurnRow", row), one.usd)
        for row, one in zip(found, prices, strict=True)
        if one.usd is not None
    )
    if made.sessions:
        apply.add(connection, made, state)
    return len(ids)


def ask_prices_again(connection: Connection) -> int:
    """Let the rows wait once more that were looked at and have no price; returns how many."""
    refused = and_(c.cost_usd.is_(None), c.price_note.is_not(None))
    return connection.execute(update(turns).where(refused).values(price_note=None)).rowcount


def prune_rows(connection: Connection, before: int, *, limit: int) -> int:
    """Delete up to ``limit`` rows that started before an instant; the rollups keep them, but for
    the sums of breaks."""
    old = select(c.id).where(c.started_at < before).order_by(c.started_at).limit(limit)
    ids = connection.execute(old).scalars().all()
    # Locked before it is asked which are breaks: a verdict may make one of a row meanwhile.
    locked = select(c.id).where(among(connection, c.id, ids)).order_by(c.id).with_for_update()
    ids = connection.execute(locked).scalars().all()
    breaks = Broken()
    breaks.add(_broken(connection, ids), -1)
    deleted = delete(turns).where(c.id.in_(ids)).returning(c.turn_id)
    gone = connection.execute(deleted).scalars().all()
    if gone:
        merged = delete(merged_records).where(merged_records.c.turn_id.in_(gone))
        connection.execute(merged)
        states.hold(connection, change=False)
        break_sums.put(connection, breaks)
    return len(gone)


def _count(
    connection: Connection, made: Contributions, rows: Sequence[TurnRow], *, taken: bool = False
) -> None:
    newest = min(max(row.started_at for row in rows), max(row.recorded_at for row in rows))
    state = apply.advance(connection, newest)
    if state.missing and taken:
        raise NOT_BUILT.with_traceback(None)  # without the frames of the times before
    late = {key for start, key, _ in made.sessions if start < state.coarse_until}
    if late:
        lives.hold(connection)
    apply.add(connection, made, state)
    if taken:
        apply.tidy(connection, made, state)
        session_ends.correct(connection, made, state)
    if late:
        lives.refresh(connection, late, state)


def _unsettle(connection: Connection, sessions: set[str], breaks: Broken) -> None:
    """Have what is left of sessions judged anew: one turn that waits is enough for that."""
    if not sessions:
        return
    under_way.disturb(connection, sessions)
    one = (
        select(func.min(c.id))
        .where(c.session_key.in_(sessions), c.kind == Kind.GENERATION)
        .group_by(c.session_key)
    )
    left = connection.execute(select(c.turn_id).where(c.id.in_(one))).scalars()
    _put_verdicts(connection, dict.fromkeys(left, NO_VERDICT), breaks)


def _unsettle_after(connection: Connection, new: Sequence[TurnRow], breaks: Broken) -> None:
    """Have turns judged anew that ended after one that has no verdict itself and came late.

    Verdicts that came along with it, in a file of ours, were given in its presence.
    """
    late = defaultdict(list)
    for row in new:
        if row.kind != Kind.GENERATION:
            late[row.session_key].append(row)
    under_way.disturb(connection, late)
    beside = defaultdict(list)
    for row in new:
        if row.session_key in late:
            beside[row.session_key].append(row.turn_id)
    found: list[str] = []
    for key, rows in late.items():
        for some in parts(_earliest(rows), AT_ONCE):
            after = (
                and_(c.started_at >= row.started_at - LATE_MS, c.ended_at >= row.ended_at)
                for row in some
            )
            later = select(c.turn_id).where(
                c.session_key == key,
                c.turn_id.not_in(beside[key]),
                c.started_at >= some[0].started_at - LATE_MS,
                or_(*after),
                c.cache_verdict.is_not(None),
            )
            found += connection.execute(later.limit(1)).scalars()
    _put_verdicts(connection, dict.fromkeys(found, NO_VERDICT), breaks)


def _earliest(rows: Iterable[TurnRow]) -> list[TurnRow]:
    """The rows before which no other of them both began and ended, in the order they began: what
    comes after any row comes after one of these."""
    found: list[TurnRow] = []
    for row in sorted(rows, key=lambda row: (row.started_at, row.ended_at)):
        if not found or row.ended_at < found[-1].ended_at:
            found.append(row)
    return found


def _broken(connection: Connection, ids: Collection[int]) -> list[TurnRow]:
    """Which of some rows are breaks, with all that their sums are made from. They are locked."""
    query = select(*(c[name] for name in NEEDED)).where(among(connection, c.id, ids), broken)
    # As far as these sums are concerned, they are rows.
    found = connection.execute(query.order_by(c.id).with_for_update())
    return [cast("TurnRow", row) for row in found]


def _locked(
    connection: Connection, condition: ColumnElement[bool], limit: int | None = None
) -> list[TurnRow]:
    query = select(*_columns).where(condition).order_by(c.id).limit(limit).with_for_update()
    found = connection.execute(query)
    return [TurnRow.of(values) for values in found]
