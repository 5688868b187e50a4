"""The settings in force, where each comes from, and what became of each upstream's turns.

Secrets are masked here, before anything is encoded: the answer never holds one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter

from app import presets
from app.ledger.rows import iso, to_ms
from app.setting_table import SETTINGS, UPSTREAM_SETTINGS, Setting
from app.settings import Settings
from app.upstream_settings import UpstreamSettings
from app.version import VERSION
from app.web.answers import JsonAnswer
from app.web.web import Web


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api", tags=["api"])

    @api.get("/settings")
    def settings() -> JsonAnswer:
        """The settings in force, each with its source; the upstreams with their counters."""
        settings = web.in_force
        counted = web.telemetry.continuation()
        return JsonAnswer(
            {"as_of": iso(to_ms(web.clock.now())), "version": VERSION}
            | shown(settings)
            | {
                "upstreams": [
                    upstream(one) | {"figures": counted(name)}
                    for name, one in settings.upstreams.items()
                ]
            }
        )

    return api


def shown(settings: Settings) -> dict[str, Any]:
    """The settings of the whole service, masked, and the names of what the file says of alerts."""
    masked = settings.shown()
    return {
        "settings": [
            _entry(setting, masked[setting.name], settings.sources.get(setting.name, "default"))
            for setting in SETTINGS
        ],
        "alerts": masked["alerts"],
    }


def upstream(one: UpstreamSettings) -> dict[str, Any]:
    """Where an upstream is, and its policy: each key with its source and what the preset says."""
    preset = presets.PRESETS[one.preset]
    policy = [
        _entry(setting, getattr(one.policy, setting.name), one.sources.get(setting.name, "default"))
        | {"because": preset.sources.get(setting.name)}
        for setting in UPSTREAM_SETTINGS
        if setting.name not in ("base_url", "preset")
    ]
    return {
        "name": one.name,
        "base_url": one.base_url,
        "base_url_source": one.sources.get("base_url", "default"),
        "preset": one.preset,
        "preset_for": preset.upstream,
        "preset_source": one.sources.get("preset", "default"),
        "policy": policy,
    }


def _entry(setting: Setting, value: Any, source: str) -> dict[str, Any]:
    return {
        "name": setting.name,
        "value": _plain(value),
        "default": _plain(setting.default),
        "source": source,
        "secret": setting.secret,
        "holds": setting.kind.name,
        "help": setting.help,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
