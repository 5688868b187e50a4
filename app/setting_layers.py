"""One source of settings, read against a table of settings: unknown keys and wrong types end it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app import setting_kinds as kinds
from app.errors import SettingsError
from app.setting_table import Setting

_SERVICE_LINKS = (
    "Kubernetes sets such variables for a service named warmline; set enableServiceLinks: false."
)


@dataclass(frozen=True, slots=True)
class Layer:
    """``name`` is the source as it is called in messages: a file, the environment …"""

    name: str
    given: dict[str, Any]
    table: Mapping[str, Setting]
    as_text: bool
    prefix: str = ""

    def read(self) -> dict[str, Any]:
        """The values by the settings' names. Raises ``SettingsError``."""
        values: dict[str, Any] = {}
        for key, value in self.given.items():
            setting = self.table.get(key)
            if setting is not None:
                values[key] = self._value(setting, key, value)
                continue
            named = self.table.get(key.removesuffix("_file"))
            if named is None or not named.secret or not key.endswith("_file"):
                raise unknown_key(self._shown(key), self.name, map(self._shown, self._keys()))
            if named.name in self.given:
                raise SettingsError(
                    f"{self.name} sets both {self._shown(named.name)} and {self._shown(key)}.",
                    "Keep one of them.",
                )
            values[named.name] = self._value(named, key, self._from_file(key, value))
        return values

    def _value(self, setting: Setting, key: str, value: Any) -> Any:
        as_text = self.as_text or key != setting.name
        try:
            read = setting.kind.text(value) if as_text and isinstance(value, str) else value
            return setting.kind.check(read)
        except ValueError as error:
            hint = None
            if isinstance(value, str) and value.startswith("tcp://"):
                hint = _SERVICE_LINKS
            raise SettingsError(
                f"{self._shown(key)} {self._place} must be {error}.", hint
            ) from None

    @property
    def _place(self) -> str:
        return f"{'on' if self.prefix == '--' else 'in'} {self.name}"

    def _keys(self) -> list[str]:
        secrets = (f"{setting.name}_file" for setting in self.table.values() if setting.secret)
        return [*self.table, *secrets]

    def _shown(self, key: str) -> str:
        """The key as it is written in this source."""
        if self.prefix == "--":
            return "--" + key.replace("_", "-")
        return self.prefix + key.upper() if self.prefix else key

    def _from_file(self, key: str, value: Any) -> str:
        try:
            return kinds.FILE.check(value).read_text("utf-8").strip()  # type: ignore[no-any-return]
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"The file that {self._shown(key)} {self._place} names cannot be read "
                f"({type(error).__name__}).",
                "Check its path and permissions.",
            ) from None


def unknown_key(key: str, place: str, known: Iterable[str]) -> SettingsError:
    near = difflib.get_close_matches(key, list(known), 1, cutoff=0.0)
    hint = f"The nearest one is {near[0]}."
    if re.match(r"WARMLINE_(SERVICE|PORT)_", key):
        hint = _SERVICE_LINKS
    return SettingsError(f"There is no setting {key} (in {place}).", hint)
