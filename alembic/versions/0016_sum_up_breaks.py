"""Keep what breaks add up to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

LINKED = sa.text("previous IS NOT NULL")


def upgrade() -> None:
    words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

    def key(name: str) -> sa.Column[int]:
        return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)

    op.create_table(
        "rollup_break_keys",
        key("id"),
        *(
            sa.Column(name, words, nullable=False)
            for name in ("break_group", "source", "tenant", "upstream")
        ),
        *(
            sa.Column(name, words, nullable=True)
            for name in ("model", "client", "client_version", "service_tier")
        ),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("long", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rollup_break_keys")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_rollup_break_keys_break_group", "rollup_break_keys", ["break_group"])
    op.create_table(
        "rollup_breaks",
        *(key(name) for name in ("level", "key", "start")),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in (
                "turns", "counted", "missed", "written", "written_long", "sessions", "firsts",
                "first_at", "last_at",
            )
        ),
        sa.PrimaryKeyConstraint("level", "key", "start", name=op.f("pk_rollup_breaks")),
        sqlite_with_rowid=False,
    )  # fmt: skip
    op.create_table(
        "rollup_break_sessions",
        key("key"),
        sa.Column("session_key", words, nullable=False),
        key("start"),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.Column("previous", sa.BigInteger(), nullable=True),
        sa.Column("size", sa.Integer(), nullable=True),
        sa.Column("block", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint(
            "key", "session_key", "start", name=op.f("pk_rollup_break_sessions")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_rollup_break_sessions_blocks",
        "rollup_break_sessions",
        ["key", "size", "block"],
        sqlite_where=LINKED,
        postgresql_where=LINKED,
    )
    # The rows that are there are counted once (``app.ledger.rollups.rebuild``).
    op.execute(
        "INSERT INTO ledger_facts (name, value) "
        "SELECT 'break_sums_missing', '1' WHERE EXISTS (SELECT 1 FROM turns)"
    )


def downgrade() -> None:
    op.execute("DELETE FROM ledger_facts WHERE name = 'break_sums_missing'")
    op.drop_table("rollup_break_sessions")
    op.drop_table("rollup_breaks")
    op.drop_table("rollup_break_keys")
