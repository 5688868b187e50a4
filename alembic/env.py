"""Runs the migrations, for ``app.ledger.database`` and for the ``alembic`` command.

The command needs to be told the database:

    alembic -x url=sqlite:///ledger.sqlite3 upgrade head
    alembic -x url=sqlite:///ledger.sqlite3 check
"""

from __future__ import annotations

from typing import Any

from alembic import context
from sqlalchemy.engine import Connection

from app.alerts import tables
from app.ledger.database import migration_engine
from app.ledger.rollups import break_tables as _  # noqa: F401  (its tables are part of the metadata)
from app.ledger.rollups import tables as _of_rollups  # noqa: F401  (likewise)


def run(connection: Connection | None, **options: Any) -> None:
    context.configure(
        connection=connection,
        target_metadata=tables.Base.metadata,
        compare_type=True,
        compare_server_default=True,
        render_as_batch=True,
        **options,
    )
    with context.begin_transaction():
        context.run_migrations()


given: Connection | None = context.config.attributes.get("connection")
url = context.get_x_argument(as_dictionary=True).get("url")
if given is not None:
    run(given)
elif url is None:
    raise SystemExit(
        "Name the database: alembic -x url=sqlite:///FILE …, or use: warmline db upgrade"
    )
elif context.is_offline_mode():
    run(None, url=url, literal_binds=True, dialect_opts={"paramstyle": "named"})
else:
    engine = migration_engine(url)
    with engine.begin() as opened:
        run(opened)
    engine.dispose()
