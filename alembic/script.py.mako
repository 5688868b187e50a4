"""${message}

Each migration must leave a ledger that the release before can still read for as long as both run
beside each other: add first, remove in a later release.
"""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
