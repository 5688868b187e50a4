"""Add imports: what was imported when, and by what its records are known again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# Sorted by its bytes, as 0003 says.
WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
BROUGHT = sa.text("import_id IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "imports",
        sa.Column("id", WORDS, nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("state", WORDS, nullable=False),
        sa.Column("names", WORDS, nullable=False),
        sa.Column("formats", WORDS, nullable=False),
        sa.Column("rows_new", sa.BigInteger(), nullable=False),
        sa.Column("rows_known", sa.BigInteger(), nullable=False),
        sa.Column("skipped", sa.BigInteger(), nullable=False),
        sa.Column("reasons", WORDS, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_imports")),
    )
    op.create_table(
        "import_keys",
        sa.Column("key", sa.LargeBinary(16), nullable=False),
        sa.Column("import_id", WORDS, nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_import_keys")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_turns_import_id_id"),
        "turns",
        ["import_id", "id"],
        sqlite_where=BROUGHT,
        postgresql_where=BROUGHT,
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_turns_import_id_id"), table_name="turns")
    op.drop_table("import_keys")
    op.drop_table("imports")
