"""Keep how much of sessions was continued for blocks together with those within them."""

from __future__ import annotations

import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TOGETHER = 9
SHARE = sa.table("rollup_shares", sa.column("size"), sa.column("block"), sa.column("shares"))
BLOCK = sa.table("rollup_blocks", sa.column("size"), sa.column("block"), sa.column("shares"))


def upgrade() -> None:
    op.create_table(
        "rollup_shares",
        sa.Column("size", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("block", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("shares", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("size", "block", name=op.f("pk_rollup_shares")),
    )
    of: defaultdict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for size, block, share, number in _shares():
        for greater in range(size, max(size, TOGETHER) + 1):
            of[greater, block >> (greater - size)][share] += number
    rows = [
        {
            "size": size,
            "block": block,
            "shares": _stored(part for pair in sorted(shares.items()) for part in pair),
        }
        for (size, block), shares in of.items()
    ]
    if rows:
        op.get_bind().execute(SHARE.insert(), rows)
    op.drop_column("rollup_blocks", "shares")


def downgrade() -> None:
    op.add_column(
        "rollup_blocks",
        sa.Column("shares", sa.LargeBinary(), nullable=False, server_default=sa.text("''")),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("rollup_blocks", "shares", server_default=None)
    of: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for size, block, share, number in _shares():
        of[size, block] += [share] * number
    for (size, block), shares in of.items():
        op.execute(
            BLOCK.update()
            .where(BLOCK.c.size == size, BLOCK.c.block == block)
            .values(shares=sa.literal(_stored(sorted(shares)), sa.LargeBinary()))
        )
    op.drop_table("rollup_shares")


def _shares() -> Iterator[tuple[int, int, int, int]]:
    """Of each block's own sessions: size, block, share, how many have it."""
    found = op.get_bind().exec_driver_sql(
        "SELECT size, block, known, incremental, COUNT(*) FROM rollup_lives "
        "GROUP BY size, block, known, incremental"
    )
    for size, block, known, incremental, number in found.all():
        yield size, block, known << 32 | incremental, number


def _stored(numbers: Iterable[int]) -> bytes:
    entries = array("Q", numbers)
    if sys.byteorder == "big":
        entries.byteswap()
    return entries.tobytes()
