"""Remember files that need not be read again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "import_files",
        sa.Column("place", sa.LargeBinary(16), nullable=False),
        sa.Column("seen", sa.LargeBinary(16), nullable=False),
        sa.PrimaryKeyConstraint("place", name=op.f("pk_import_files")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("import_files")
