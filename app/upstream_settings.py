"""The tables ``[upstreams.NAME]``: where each upstream is, and its policy.

A key that a table does not set has the value of the upstream's preset, else the policy's default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app import presets
from app.errors import SettingsError
from app.setting_layers import Layer
from app.setting_table import UPSTREAM_SETTINGS
from engine.model import Policy

DEFAULT_UPSTREAM = "default"
_TABLE = {setting.name: setting for setting in UPSTREAM_SETTINGS}


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    name: str
    base_url: str
    policy: Policy
    preset: str = presets.DEFAULT
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each key comes from: the file, ``preset``, or ``default``."""


def read_upstreams(
    place: str | None,
    tables: Any,
    *,
    default_url: tuple[str, str],
    visible_keys: tuple[tuple[str, ...], str],
) -> dict[str, UpstreamSettings]:
    """All upstreams by name, ``default`` first. Raises ``SettingsError``.

    ``place`` is the file. ``default_url`` and ``visible_keys``: the settings of the whole service
    that upstreams have where they say nothing else, each with its source.
    """
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise SettingsError(f"upstreams in {place} must be tables: [upstreams.NAME].")
    found = {}
    for name, table in {DEFAULT_UPSTREAM: {}, **tables}.items():
        upstream = _upstream(str(place), name, table, visible_keys)
        if name == DEFAULT_UPSTREAM:
            url, source = default_url
            sources = {**upstream.sources, "base_url": source}
            upstream = replace(upstream, base_url=url, sources=sources)
        found[name] = upstream
    return found


def _upstream(
    file: str, name: str, table: dict[str, Any], visible_keys: tuple[tuple[str, ...], str]
) -> UpstreamSettings:
    place = f"[upstreams.{name}] in {file}"
    check_name(place, name)
    given = Layer(place, table, _TABLE, as_text=False).read()
    preset = presets.PRESETS[given.get("preset", presets.DEFAULT)]
    values = {setting.name: setting.default for setting in UPSTREAM_SETTINGS}
    sources = dict.fromkeys(values, "default")
    layers = (
        ({"visible_keys": visible_keys[0]}, visible_keys[1]),
        (preset.policy, "preset"),
        (given, file),
    )
    for layer, source in layers:
        values.update(layer)
        sources.update(dict.fromkeys(layer, source))
    if name != DEFAULT_UPSTREAM and not values["base_url"]:
        raise SettingsError(f"{place} has no base_url.", 'Add it: base_url = "https://…/v1".')
    base_url = values.pop("base_url")
    del values["preset"]
    return UpstreamSettings(name, base_url or "", Policy(**values), preset.name, sources)


def check_name(place: str, name: str) -> None:
    """A name that is to stand in a URL. Raises ``SettingsError``."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
        raise SettingsError(
            f"{place} has a name that cannot stand in a URL.",
            "Use lower-case letters, digits, - and _.",
        )
