"""The settings: one table behind ``warmline.toml``, ``WARMLINE_*`` and flags.

Each source beats the one before it. A key that is not in the table, a value of the wrong type and
a setting that would be unsafe are errors at start that name the key and where it was set; nothing
is guessed. ``docs/settings.md`` is checked against this table.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.errors import SettingsError
from app.setting_layers import Layer
from app.setting_table import BY_NAME, SETTINGS
from app.upstream_settings import DEFAULT_UPSTREAM, UpstreamSettings, check_name, read_upstreams

__all__ = ["DEFAULT_UPSTREAM", "AlertTables", "Settings", "UpstreamSettings", "load"]

PREFIX = "WARMLINE_"
CONFIG_FILE = "warmline.toml"
MASK = "••••"


@dataclass(frozen=True, slots=True)
class AlertTables:
    """The tables below ``[alerts]`` as they are written; ``app.alerts.config`` reads them.

    They hold addresses and secrets of webhooks, so only names are ever shown.
    """

    rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    receivers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    place: str = CONFIG_FILE
    """The file."""

    def shown(self) -> dict[str, list[str]]:
        return {"rules": sorted(self.rules), "receivers": sorted(self.receivers)}

    def __repr__(self) -> str:
        return f"AlertTables({self.shown()!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, checked. The fields are those of ``SETTINGS``."""

    host: str
    port: int
    upstream: str
    database: str
    key_file: Path
    journal_dir: Path
    journal_bytes: int
    retain_rows_days: int
    retain_rollups_days: int
    retain_alerts_days: int
    token: str | None
    gateway_token: str | None
    allowed_hosts: tuple[str, ...]
    pseudonymize: bool
    visible_keys: tuple[str, ...]
    max_body_bytes: int
    max_sessions: int
    chains_per_session: int
    max_connections: int
    baseline_bytes: int
    import_bytes: int
    public_url: str | None
    webhook_private_hosts: tuple[str, ...]
    webhook_timeout: int
    log_level: str
    upstreams: Mapping[str, UpstreamSettings]
    """By name; ``default`` is always among them."""
    alerts: AlertTables = field(default_factory=AlertTables)
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each setting comes from: a file, a variable, a flag, or ``default``."""

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def base_url(self) -> str:
        """What links in messages begin with; without trailing slash."""
        if self.public_url is not None:
            return self.public_url
        host = self.host.strip("[]")
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def shown(self) -> dict[str, Any]:
        """All settings as they may be shown to a person: secrets are masked."""
        values: dict[str, Any] = {}
        for setting in SETTINGS:
            value = getattr(self, setting.name)
            if setting.name == "database":
                value = without_password(value)
            elif setting.secret and value is not None:
                value = MASK
            values[setting.name] = value
        values["upstreams"] = dict(self.upstreams)
        values["alerts"] = self.alerts.shown()
        return values

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{k}={v!r}' for k, v in self.shown().items())})"


def load(
    *,
    config: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, str | None] | None = None,
) -> Settings:
    """Read, check and merge all sources. Raises ``SettingsError``.

    ``config`` names the file; without it ``WARMLINE_CONFIG`` does, and without that
    ``warmline.toml`` in the working directory is read if there is one. ``flags`` are texts as
    they were typed, by setting name; None is a flag that was not given.
    """
    variables = os.environ if environ is None else environ
    values: dict[str, Any] = {setting.name: setting.default for setting in SETTINGS}
    sources: dict[str, str] = dict.fromkeys(values, "default")
    path = _config_path(config, variables)
    document = {} if path is None else _read_toml(path)
    tables = document.pop("upstreams", {})
    alerts = _alerts(str(path or CONFIG_FILE), document.pop("alerts", {}))
    layers = [
        Layer(str(path), document, BY_NAME, as_text=False),
        Layer(
            "the environment", _from_environment(variables), BY_NAME, as_text=True, prefix=PREFIX
        ),
        Layer(
            "the command line",
            {name: value for name, value in (flags or {}).items() if value is not None},
            BY_NAME,
            as_text=True,
            prefix="--",
        ),
    ]
    _move_default_url(layers[0], tables)
    for layer in layers:
        for name, value in layer.read().items():
            values[name] = value
            sources[name] = layer.name
    if values["database"] is None:
        values["database"] = _default_database(variables)
    values["key_file"] = values["key_file"] or _default_key_file(values["database"])
    values["journal_dir"] = values["journal_dir"] or _default_journal(values["database"], variables)
    settings = Settings(
        **values,
        upstreams=read_upstreams(
            None if path is None else str(path),
            tables,
            default_url=(values["upstream"], sources["upstream"]),
            visible_keys=(values["visible_keys"], sources["visible_keys"]),
        ),
        alerts=alerts,
        sources=sources,
    )
    _refuse_exposure(settings)
    return settings


def _config_path(config: str | Path | None, variables: Mapping[str, str]) -> Path | None:
    named = config or variables.get(PREFIX + "CONFIG")
    if named:
        return Path(named).expanduser()
    return Path(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise SettingsError(
            f"The settings file {path} cannot be read ({type(error).__name__}).",
            "Check its path and permissions.",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"The settings file {path} is not valid TOML: {error}.") from None


def _from_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables of ours by setting name. A blank one is as good as none."""
    return {
        name.removeprefix(PREFIX).lower(): value
        for name, value in variables.items()
        if name.startswith(PREFIX) and name != PREFIX + "CONFIG" and value.strip()
    }


def _move_default_url(layer: Layer, tables: Any) -> None:
    """``base_url`` in ``[upstreams.default]`` is the setting ``upstream``, written elsewhere."""
    table = tables.get(DEFAULT_UPSTREAM) if isinstance(tables, dict) else None
    if not isinstance(table, dict) or "base_url" not in table:
        return
    if "upstream" in layer.given:
        raise SettingsError(
            f"{layer.name} sets both upstream and base_url in [upstreams.default].",
            "They are the same setting; keep one of them.",
        )
    layer.given["upstream"] = table["base_url"]


def _alerts(place: str, tables: Any) -> AlertTables:
    """Only that they are tables with usable names; what they say is not known here."""
    if not isinstance(tables, dict):
        raise SettingsError(f"alerts in {place} must be a table.", _ALERT_TABLES)
    for group, named in tables.items():
        if group not in ("rules", "receivers"):
            raise SettingsError(f"There is no table [alerts.{group}] (in {place}).", _ALERT_TABLES)
        if not isinstance(named, dict) or not all(isinstance(t, dict) for t in named.values()):
            raise SettingsError(
                f"alerts.{group} in {place} must be tables: [alerts.{group}.NAME].", _ALERT_TABLES
            )
        for name in named:
            check_name(f"[alerts.{group}.{name}] in {place}", name)
    return AlertTables(tables.get("rules", {}), tables.get("receivers", {}), place)


_ALERT_TABLES = "Rules are tables [alerts.rules.NAME], receivers [alerts.receivers.NAME]."


def _default_database(variables: Mapping[str, str]) -> str:
    data = variables.get("XDG_DATA_HOME", "")
    home = Path(data) if Path(data).is_absolute() else Path.home() / ".local" / "share"
    return str(home / "warmline" / "ledger.sqlite3")


def _default_key_file(database: str) -> Path:
    if database.startswith("postgresql"):
        raise SettingsError(
            "With PostgreSQL the setting key_file is required.",
            "All gateways need the same key. Create it once with: "
            "(umask 077; openssl rand -hex 32 > warmline.key)",
        )
    return _beside(database, ".key")


def _default_journal(database: str, variables: Mapping[str, str]) -> Path:
    if not database.startswith("postgresql"):
        return _beside(database, ".turns")
    state = variables.get("XDG_STATE_HOME", "")
    home = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    # What is left of one ledger must never be written to another.
    name = hashlib.sha256(without_password(database).encode()).hexdigest()[:12]
    return home / "warmline" / f"turns-{name}"


def _beside(database: str, suffix: str) -> Path:
    """The SQLite file with ``suffix`` added to its name."""
    file = database
    if "://" in database:
        file = database.partition(":///")[2].partition("?")[0]
    return Path(file + suffix).expanduser()


def without_password(database: str) -> str:
    """A database URL as it may be shown or logged."""
    if "://" not in database:
        return database
    try:
        password = urlsplit(database).password
    except ValueError:
        return MASK
    secret = f":{password}@"
    return database if password is None else database.replace(secret, f":{MASK}@", 1)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _refuse_exposure(settings: Settings) -> None:
    """What other machines can reach needs both tokens."""
    if settings.is_loopback:
        return
    missing = [name for name in ("token", "gateway_token") if getattr(settings, name) is None]
    if missing:
        raise SettingsError(
            f"Other machines can reach {settings.host}, but {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not set.",
            "Set both (token for the dashboard, gateway_token for clients), or listen on "
            "127.0.0.1.",
        )
