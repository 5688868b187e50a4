"""Sum up what turns cost, and know the turns that wait for a price."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

UNPRICED = sa.text("price_note IS NULL AND cost_usd IS NULL")
TABLES = ("rollup_cells", "rollup_sessions")


def upgrade() -> None:
    for table in TABLES:
        for name in ("priced", "cost"):
            column = sa.Column(name, sa.BigInteger(), nullable=False, server_default="0")
            op.add_column(table, column)
    # No version before has priced a row: only an import can have brought prices.
    op.execute(
        "INSERT INTO ledger_facts (name, value) SELECT 'rollups_missing', 'yes' "
        "WHERE EXISTS (SELECT 1 FROM turns WHERE cost_usd IS NOT NULL) "
        "AND NOT EXISTS (SELECT 1 FROM ledger_facts WHERE name = 'rollups_missing')"
    )
    op.create_index(
        "ix_turns_unpriced", "turns", ["id"], sqlite_where=UNPRICED, postgresql_where=UNPRICED
    )


def downgrade() -> None:
    op.drop_index("ix_turns_unpriced", "turns")
    for table in TABLES:
        for name in ("priced", "cost"):
            op.drop_column(table, name)
