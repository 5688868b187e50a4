"""Whose imported rows are: what a log does not tell, and this ledger needs.

A log names sessions, never credentials. So all that is made from other tools' logs is of one tenant
of its own, and a session's key is made with the ledger's key, as the gateway makes its own. A
reader leaves ``tenant`` and ``session_key`` empty (``UNPLACED``); the run fills them in here. The
gateway's row of the same call has another tenant and another key: twins are found by session name
and ``response_id`` (docs/decisions/0027).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from app.keys import Keys
from app.ledger.facts import clean
from app.ledger.rows import CLIENT_NAMES, TurnRow

UNPLACED = ""
"""``tenant`` and ``session_key`` of a row that another tool's log was made into."""
_NAMED_CHAINS = frozenset({"import:neutral"})
"""Sources whose chains have the names that somebody gave them."""


@dataclass(frozen=True, slots=True)
class Identity:
    keys: Keys
    pseudonymize: bool = False
    """Names are hashed, as the gateway does with the setting of that name."""
    tenant: str = field(init=False)
    """Of everything that other tools have logged."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tenant", self.keys.hmac("tenant-of-imports"))

    def place(self, row: TurnRow) -> TurnRow:
        """Give the row its tenant and session key; one that has a tenant stays as it is."""
        if row.tenant == UNPLACED:
            row.tenant = self.tenant
            row.session_key = self.session_key(row.upstream, row.session or "")
            for name in CLIENT_NAMES:
                setattr(row, name, self._name(getattr(row, name)))
            if row.source in _NAMED_CHAINS:
                row.chain = self._name(row.chain)
        return row

    def session_key(self, upstream: str, session: str) -> str:
        """``session`` is the name as the log has it, of whatever length."""
        return self.keys.hmac("session-of-imports", self.tenant, upstream, session)

    def _name(self, name: str | None) -> str | None:
        if name is None:
            return None
        return self.keys.pseudonym(name) if self.pseudonymize else clean(name)
