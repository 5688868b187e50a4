"""The session that is judged in several transactions at present, if one is: a fact of the ledger.

A turn that waits for a verdict has its session judged anew, but not while just that is done: the
turn may be one that comes later in it, and waits no more when it has been reached. So whoever
changes what verdicts stand on takes the fact away, and who judges begins the session again.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select

from app.ledger.models import ledger_facts
from app.ledger.rollups import state

_NAME = "judging_session"
_name, _value = ledger_facts.c.name, ledger_facts.c.value


def begin(connection: Connection, session: str) -> None:
    """There is one at a time: one process judges."""
    state.put(connection, _NAME, session)


def undisturbed(connection: Connection, session: str) -> bool:
    """Whether nobody has changed rows of it since it was begun, nor will before this transaction
    ends."""
    query = select(_value).where(_name == _NAME).with_for_update()
    return connection.execute(query).scalar_one_or_none() == session


def end(connection: Connection) -> None:
    state.remove(connection, _NAME)


def disturb(connection: Connection, sessions: Collection[str]) -> None:
    """Rows of these sessions were changed, added amid others, or deleted."""
    if sessions:
        connection.execute(
            ledger_facts.delete().where(_name == _NAME, _value.in_(sorted(sessions)))
        )
