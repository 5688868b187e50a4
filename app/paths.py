"""Where the files that are not Python lie: at the top of a checkout, inside ``app`` in a wheel."""

from __future__ import annotations

from pathlib import Path

APP = Path(__file__).resolve().parent


def _find(name: str) -> Path:
    packed = APP / name
    return packed if packed.is_dir() else APP.parent / name


STATIC = _find("static")
ALEMBIC = _find("alembic")
TEMPLATES = APP / "web" / "templates"
