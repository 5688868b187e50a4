"""A ledger with the history of the demo, judged, at half past five in the afternoon."""

from __future__ import annotations

from app.demo.history import HOUR, generate
from app.judging import judge_all
from tests.support.clock import START
from tests.support.site import Site

NOW = START + 9.5 * HOUR
"""17:30 UTC: this day's planted hours have passed."""


def fill(site: Site, *, days: int = 1) -> None:
    """The history of the days before ``NOW``, which is the site's present from then on."""
    site.clock.advance(NOW - START)
    site.write(generate(NOW, days=days))
    judge_all(site.engine, site.clock)
