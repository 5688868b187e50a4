"""One number for each session of a plan, added up in Python.

SQLite sorts rows to group them, and sorts once more where stretches come beside them. To hand over
the rows as one string and to count what is in it takes half the time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection, case, not_
from sqlalchemy.dialects import sqlite

from app.ledger.cells import INCREMENTAL
from app.ledger.rollups.among import listed, sessions_among
from app.ledger.rollups.plan import Plan
from app.ledger.rollups.unfiltered import c, known_mode, of_rows, of_stretches, parts


class Number(NamedTuple):
    """What is added up."""

    columns: tuple[str, ...]
    value: str
    """Made of these columns."""
    kind: str
    """Which of ``kinds`` a row is, a digit; for SQLite."""
    kinds: tuple[int, ...]
    """The value of a row by its kind."""


_UPPER = 1 << 32
_KIND = case((not_(known_mode), "0"), (c.mode.in_(sorted(INCREMENTAL)), "2"), else_="1")
TURNS = Number(("turns",), "turns", "'0'", (1,))
SHARE = Number(
    ("incremental", "known"),
    f"known * {_UPPER} + incremental",
    str(_KIND.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})),
    (0, _UPPER, _UPPER + 1),
)
"""As in ``shares``: the turns of known mode in the upper half."""


def added(
    connection: Connection, made: Plan, number: Number, only: Collection[str] | None = None
) -> dict[str, int]:
    """The sums of the sessions with turns in a plan; ``only`` of these."""
    whose = "" if only is None else sessions_among(connection)
    given = () if only is None else (listed(connection, only),)
    if connection.dialect.name == "postgresql":
        selects = parts(connection.dialect, made, number.columns, whose)
        if not selects:
            return {}
        found = connection.exec_driver_sql(
            f"SELECT session_key, CAST(SUM({number.value}) AS BIGINT) "  # noqa: S608
            f"FROM ({' UNION ALL '.join(selects)}) AS parts GROUP BY session_key",
            given * len(selects),
        )
        return dict(map(tuple, found))
    sums: defaultdict[str, int] = defaultdict(int)
    for stretches in of_stretches(connection.dialect, made, (number.value,), whose):
        for key, value in connection.exec_driver_sql(stretches, given).all():
            sums[key] += value
    for rows in of_rows(made, f"json_group_array({number.kind} || session_key)", whose):
        text = connection.exec_driver_sql(rows, given).scalar_one()
        for row, times in Counter(msgspec.json.decode(text, type=list[str])).items():
            sums[row[1:]] += times * number.kinds[int(row[0])]
    return dict(sums)


def counted(connection: Connection, value: str, of: str) -> Counter[int]:
    """How often each value occurs in what is selected."""
    if connection.dialect.name == "postgresql":
        found = connection.exec_driver_sql(f"SELECT {value} AS value, COUNT(*) {of} GROUP BY value")
        return Counter(dict(map(tuple, found)))
    text = connection.exec_driver_sql(f"SELECT json_group_array({value}) {of}").scalar_one()
    return Counter(msgspec.json.decode(text, type=list[int]))
