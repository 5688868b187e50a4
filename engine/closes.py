"""What a close code of the upstream says of the turn that waited on the connection.

Most say only that the connection is gone: 1000 and 1001 where its time is over, 1008 and 1011
behind an error frame that the client has had. One is the provider's whole answer (PROTOCOL 2).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import failures


@dataclass(frozen=True, slots=True)
class Refusal:
    """The turn was refused: what the client is answered."""

    status: int
    body: bytes


def refusal(code: int | None) -> Refusal | None:
    """None where the code is no answer to the turn."""
    if code == 4402:
        message = "The upstream refused the turn: no credits are left (close code 4402)."
        return Refusal(402, failures.synthetic(402, "insufficient_credits", message))
    return None
