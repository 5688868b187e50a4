"""``prompt_cache_diagnostics``: how a request's cached tokens compare with those of an earlier one.

Told from the cache model itself. The documented reasons come first; the list that is known is not
complete, and those after them are made up in its manner.
"""

from __future__ import annotations

from .cache import BLOCK, MINIMUM, Looked, Prompt
from .errors import invalid_type
from .parameters import writes_are_reported
from .wire import Json

OPTIONS = "prompt_cache_options"
COMPARISON = "comparison_response_id"


def asked_for(body: Json) -> str | None:
    """The response that the request is to be compared with. Raises ``ApiError``."""
    options = body.get(OPTIONS)
    wanted = options.get(COMPARISON) if isinstance(options, dict) else None
    if wanted is not None and not isinstance(wanted, str):
        raise invalid_type(f"{OPTIONS}.{COMPARISON}", "a string")
    return wanted


def diagnose(model: str, before: Prompt | None, now: Prompt, looked: Looked) -> Json:
    """``before``: the compared response's prompt; None: there is no such response."""
    if not writes_are_reported(model):
        return {"type": "unavailable"}
    if before is None:
        return {"type": "comparison_response_not_found"}
    whole = len(before.blocks) * BLOCK
    if whole < MINIMUM:
        return {"type": "unavailable"}
    if looked.cached >= whole:
        return {"type": "cache_hit"}
    shared = _shared(before, now) * BLOCK
    return {
        "type": "cache_miss",
        "reason": _reason(before, now, whole_is_shared=shared == whole),
        "cache_missed_tokens": whole - looked.cached,
        "comparison_reusable_tokens": shared if shared >= MINIMUM else 0,
    }


def _shared(before: Prompt, now: Prompt) -> int:
    """Blocks from the first on that both have in the same cache."""
    if before.space != now.space:
        return 0
    count = 0
    for one, other in zip(before.blocks, now.blocks, strict=False):
        if one != other:
            break
        count += 1
    return count


def _reason(before: Prompt, now: Prompt, *, whole_is_shared: bool) -> str:
    for name, value in now.settings:
        if dict(before.settings).get(name) != value:
            return f"{name}_changed"
    return "cache_expired" if whole_is_shared else "input_changed"
