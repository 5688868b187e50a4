"""Sum up sessions by quarters of an hour and as a whole, and the rest by five minutes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Sorted by its bytes, as 0003 says.
WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
FIVE, QUARTER, HOUR = 300_000, 900_000, 3_600_000
COARSE_UNTIL, ROWS_FROM = (
    f"(SELECT CAST(value AS BIGINT) FROM ledger_facts WHERE name = '{name}')"  # noqa: S608
    for name in ("rollups_coarse_until", "rows_kept_from")
)
SUMMED = ("rollup_cells", "rollup_times")


def upgrade() -> None:
    op.create_index(
        op.f("ix_rollup_sessions_session_key_level_start"),
        "rollup_sessions",
        ["session_key", "level", "start"],
    )
    op.create_table(
        "rollup_lives",
        *_numbers("size", "block", autoincrement=False),
        sa.Column("session_key", WORDS, nullable=False),
        *_numbers("first", "last", "turns", "incremental", "known"),
        sa.PrimaryKeyConstraint("size", "block", "session_key", name=op.f("pk_rollup_lives")),
        sqlite_with_rowid=False,
    )
    op.create_index("uq_rollup_lives_session_key", "rollup_lives", ["session_key"], unique=True)
    op.create_table(
        "rollup_blocks",
        *_numbers("size", "block", autoincrement=False),
        *_numbers("sessions", "most"),
        sa.Column("leader", WORDS, nullable=False),
        sa.Column("shares", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("size", "block", name=op.f("pk_rollup_blocks")),
    )
    # Rows that are there are counted anew after the migration, with progress. Those that are
    # deleted are known by the quarter of an hour only, and their sessions by the hour.
    for table in SUMMED:
        names = _columns(table)
        op.execute(
            f"INSERT INTO {table} (level, {names}) SELECT {FIVE}, {names} FROM {table} "  # noqa: S608
            f"WHERE level = {QUARTER} AND start < {ROWS_FROM}"
        )
        op.execute(f"DELETE FROM {table} WHERE level = {QUARTER}")  # noqa: S608
    names = _columns("rollup_sessions")
    op.execute(
        f"INSERT INTO rollup_sessions (level, {names}) SELECT {QUARTER}, {names} "  # noqa: S608
        f"FROM rollup_sessions WHERE level = {HOUR} AND start < {ROWS_FROM}"
    )
    # Hours are summed up when they are over, from now on.
    op.execute(
        f"DELETE FROM rollup_sessions WHERE level = {HOUR} AND start >= {COARSE_UNTIL}"  # noqa: S608
    )
    op.execute(
        "INSERT INTO ledger_facts (name, value) SELECT 'rollups_missing', 'yes' "
        "WHERE EXISTS (SELECT 1 FROM turns) OR EXISTS (SELECT 1 FROM rollup_sessions) "
        "ON CONFLICT (name) DO NOTHING"
    )


def downgrade() -> None:
    op.drop_table("rollup_blocks")
    op.drop_table("rollup_lives")
    op.drop_index(op.f("ix_rollup_sessions_session_key_level_start"), "rollup_sessions")
    for table, both in zip(SUMMED, ("{0} = {1}.{0} + excluded.{0}", _appended()), strict=True):
        names = _columns(table)
        added = [name for name in names.split(", ") if name not in ("detail", "start", "key")]
        adds = ", ".join(both.format(name, table) for name in added)
        selected = names.replace("start", f"start - start % {QUARTER}")
        for place in range(0, QUARTER, FIVE):  # PostgreSQL changes no row twice in a statement
            op.execute(
                f"INSERT INTO {table} (level, {names}) "  # noqa: S608
                f"SELECT {QUARTER}, {selected} FROM {table} "
                f"WHERE level = {FIVE} AND start % {QUARTER} = {place} "
                f"ON CONFLICT (detail, level, start, key) DO UPDATE SET {adds}"
            )
        op.execute(f"DELETE FROM {table} WHERE level = {FIVE}")  # noqa: S608
    # Hours that are not over have been summed up from their quarters only.
    ends = {"session": "MAX", "first_at": "MIN", "last_at": "MAX"}
    place = ("start", "session_key", "key")
    names = _columns("rollup_sessions")
    selected = ", ".join(
        name if name in place else f"{ends.get(name, 'SUM')}({name})" for name in names.split(", ")
    ).replace("start", f"start - start % {HOUR}", 1)
    op.execute(
        f"INSERT INTO rollup_sessions (level, {names}) SELECT {HOUR}, {selected} "  # noqa: S608
        f"FROM rollup_sessions WHERE level = {QUARTER} AND start >= {COARSE_UNTIL} "
        f"GROUP BY start - start % {HOUR}, session_key, key"
    )
    op.execute(f"DELETE FROM rollup_sessions WHERE level = {QUARTER}")  # noqa: S608


def _columns(table: str) -> str:
    found = sa.inspect(op.get_bind()).get_columns(table)
    return ", ".join(column["name"] for column in found if column["name"] != "level")


def _appended() -> str:
    """Times are added up by appending them. SQLite takes two blobs in a row for text."""
    both = "{1}.{0} || excluded.{0}"
    return "{0} = " + (f"CAST({both} AS BLOB)" if op.get_bind().dialect.name == "sqlite" else both)


def _numbers(*names: str, **options: bool) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False, **options) for name in names]
