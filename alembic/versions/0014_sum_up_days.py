"""Sum up whole days too, from their stretches of six hours."""

from __future__ import annotations

import sys
from array import array
from collections import Counter, defaultdict

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

BLOCK, DAY = 21_600_000, 86_400_000
PLACE = ("detail", "level", "start", "key")
TABLES = ("rollup_cells", "rollup_times")
GREATEST = 32_767
"""A count of a distribution grows by so much at most in one stored change."""


def upgrade() -> None:
    connection = op.get_bind()
    # Days that are over; of these all stretches of six hours are there.
    until = connection.exec_driver_sql(
        "SELECT value FROM ledger_facts WHERE name = 'rollups_coarse_until'"
    ).scalar_one_or_none()
    over = f"level = {BLOCK} AND start < {int(until or 0) // DAY * DAY}"
    start = f"start - start % {DAY}"
    columns = sa.inspect(connection).get_columns("rollup_cells")
    sums = [column["name"] for column in columns if column["name"] not in PLACE]
    added = ", ".join(f"SUM({name})" for name in sums)
    op.execute(
        f"INSERT INTO rollup_cells ({', '.join((*PLACE, *sums))}) "  # noqa: S608  (our own names)
        f"SELECT detail, {DAY}, {start}, key, {added} FROM rollup_cells "
        f"WHERE {over} GROUP BY detail, {start}, key"
    )
    parts: defaultdict[tuple[int, int, int], list[tuple[bytes, bytes]]] = defaultdict(list)
    found = connection.execute(
        sa.text(f"SELECT detail, {start}, key, ttft, duration FROM rollup_times WHERE {over}")  # noqa: S608
    )
    for detail, day, key, ttft, duration in found:
        parts[detail, day, key].append((ttft, duration))
    names = (*PLACE, "ttft", "duration")
    insert = sa.table("rollup_times", *(sa.column(name) for name in names)).insert()
    rows = []
    for (detail, day, key), some in parts.items():
        times = map(_together, zip(*some, strict=True))
        rows.append(dict(zip(names, (detail, DAY, day, key, *times), strict=True)))
    if rows:
        connection.execute(insert, rows)


def downgrade() -> None:
    for table in TABLES:
        op.execute(f"DELETE FROM {table} WHERE level = {DAY}")  # noqa: S608


def _together(stored: tuple[bytes, ...]) -> bytes:
    """Distributions added up: as one, with one change for each bucket."""
    halves = array("h", b"".join(stored))
    if sys.byteorder == "big":
        halves.byteswap()
    counts: Counter[int] = Counter()
    for bucket, growth in zip(halves[::2], halves[1::2], strict=True):
        counts[bucket] += growth
    entries = array("h")
    for bucket, count in sorted(counts.items()):
        whole, rest = divmod(count, GREATEST)
        for step in (*(GREATEST,) * whole, rest):
            if step:
                entries.extend((bucket, step))
    if sys.byteorder == "big":
        entries.byteswap()
    return entries.tobytes()
