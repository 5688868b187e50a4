"""How long things take. Delays are computed here and slept by the shell, which may scale them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds. The defaults have the proportions of reports from the field, not their precision."""

    connect: float = 0.45
    """Accepting a WebSocket upgrade."""
    http_request: float = 0.35
    """What every POST pays beyond a frame on an open socket."""
    request: float = 0.25
    per_uncached_token: float = 1 / 9_000
    per_cached_token: float = 1 / 400_000
    per_uploaded_byte: float = 1 / 12_000_000
    per_output_token: float = 1 / 90

    def first_event(
        self, *, http: bool, uploaded: int, input_tokens: int, cached_tokens: int
    ) -> float:
        """From the request's arrival to ``response.created``."""
        overhead = self.http_request if http else 0.0
        return (
            overhead
            + self.request
            + uploaded * self.per_uploaded_byte
            + (input_tokens - cached_tokens) * self.per_uncached_token
            + cached_tokens * self.per_cached_token
        )

    def output(self, tokens: int) -> float:
        return tokens * self.per_output_token


NO_LATENCY = Latency(
    connect=0,
    http_request=0,
    request=0,
    per_uncached_token=0,
    per_cached_token=0,
    per_uploaded_byte=0,
    per_output_token=0,
)
