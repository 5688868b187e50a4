"""The table of settings: name, what it may hold, default, what it does, whether it is a secret.

Command line, environment, file, documentation and the settings page all come from it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from app import presets
from app import setting_kinds as kinds
from app.setting_kinds import Kind
from engine.model import Policy

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    kind: Kind
    default: Any
    """None: worked out from other settings, as ``help`` says, or not set."""
    help: str
    secret: bool = False
    """Shown nowhere, and may be given as the path of a file that holds it: ``<name>_file``."""


SETTINGS: tuple[Setting, ...] = (
    Setting("host", kinds.HOST, "127.0.0.1", "Address to listen on."),
    Setting("port", kinds.integer(0, 65_535), 8787, "Port to listen on; 0 takes a free one."),
    Setting(
        "upstream",
        kinds.BASE_URL,
        "https://api.openai.com/v1",
        "Base URL of the upstream named `default`, which serves `/v1`.",
    ),
    Setting(
        "database",
        kinds.DATABASE,
        None,
        "Where the ledger is: a path, `sqlite:///PATH` or `postgresql://USER@HOST/NAME`. "
        "Without it `$XDG_DATA_HOME/warmline/ledger.sqlite3` "
        "(`~/.local/share/warmline/ledger.sqlite3`).",
        secret=True,
    ),
    Setting(
        "key_file",
        kinds.FILE,
        None,
        "File with the key of all hashes. Without it the name of the SQLite file with `.key` "
        "added, made at first start. Required with PostgreSQL.",
    ),
    Setting(
        "journal_dir",
        kinds.FILE,
        None,
        "Directory of the journal, which holds rows until the database has them; gateways on one "
        "machine may share it. Without it the name of the SQLite file with `.turns` added, with "
        "PostgreSQL `$XDG_STATE_HOME/warmline/turns-…` (`~/.local/state/warmline/turns-…`).",
    ),
    Setting(
        "journal_bytes",
        kinds.integer(MIB),
        256 * MIB,
        "Largest size of the journal. Beyond it rows are lost if the process ends, and counted.",
    ),
    Setting(
        "retain_rows_days",
        kinds.integer(0, 36_500),
        180,
        "Days that rows are kept; 0 is for ever. Figures over older time stay, see "
        "`retain_rollups_days`.",
    ),
    Setting(
        "retain_rollups_days",
        kinds.integer(0, 36_500),
        1_100,
        "Days that the sums behind pages and charts are kept, at least as long as rows; 0 is for "
        "ever.",
    ),
    Setting(
        "retain_alerts_days",
        kinds.integer(0, 36_500),
        180,
        "Days that events of alerts, and messages that are settled, are kept; 0 is for ever.",
    ),
    Setting(
        "token",
        kinds.SECRET,
        None,
        "Token of the dashboard, its API, live updates, metrics and docs. Required unless `host` "
        "is loopback.",
        secret=True,
    ),
    Setting(
        "gateway_token",
        kinds.SECRET,
        None,
        "Token that clients of the gateway send as `x-warmline-token`. Required unless `host` is "
        "loopback.",
        secret=True,
    ),
    Setting(
        "allowed_hosts",
        kinds.HOSTS,
        (),
        "Further names by which clients may address the server, e.g. that of a reverse proxy.",
    ),
    Setting(
        "pseudonymize",
        kinds.FLAG,
        False,
        "Store the names that clients chose (session, root session, turn group, cache key) as "
        "hashes.",
    ),
    Setting(
        "visible_keys",
        kinds.WORDS,
        Policy().visible_keys,
        "JSON keys outside the protocol that evidence may name; all others appear as hashes.",
    ),
    Setting(
        "max_body_bytes",
        kinds.integer(1_024),
        64 * MIB,
        "Largest request body after inflation; a larger one is answered with 413.",
    ),
    Setting("max_sessions", kinds.integer(1), 4_096, "Sessions whose anchors are kept."),
    Setting("chains_per_session", kinds.integer(1), 16, "Live chains kept per session."),
    Setting("max_connections", kinds.integer(1), 512, "Upstream WebSocket connections at once."),
    Setting(
        "baseline_bytes",
        kinds.integer(0),
        512 * MIB,
        "Bytes of transcripts kept to continue sessions; beyond it only digests are kept.",
    ),
    Setting(
        "import_bytes",
        kinds.integer(MIB),
        2_048 * MIB,
        "Largest size of the files that are uploaded to be imported, all at the same time. What "
        "they hold is read up to twenty times that.",
    ),
    Setting(
        "public_url",
        kinds.BASE_URL,
        None,
        "URL by which people reach the dashboard; links in messages begin with it. Without it "
        "`http://HOST:PORT`.",
    ),
    Setting(
        "webhook_private_hosts",
        kinds.HOSTS,
        (),
        "Hosts to which webhooks may go although their addresses are private or their URL is plain "
        "`http`.",
    ),
    Setting(
        "webhook_timeout",
        kinds.integer(1, 60),
        15,
        "Seconds that one attempt to deliver a webhook may take.",
    ),
    Setting(
        "log_level",
        kinds.choice("debug", "info", "warning", "error"),
        "info",
        "What is logged.",
    ),
)
BY_NAME = {setting.name: setting for setting in SETTINGS}

UPSTREAM_HELP: dict[str, str] = {
    "base_url": "Base URL; `/responses` is appended. Required, except in `[upstreams.default]`.",
    "preset": "Whose endpoint it is: other defaults for the keys below.",
    "continuation": "`websocket`: turns are continued over WebSockets. `store`: over HTTP, from "
    "responses that the upstream keeps. `observe`: nothing is changed, and each row says what "
    "could have been. `off`: sent in full over HTTP.",
    "models": "Only these models are continued; `*` at the end of a name is anything. Empty: all.",
    "force_store": "With `store`: store also what the client asked not to store.",
    "tools": "`relaxed` continues although `tools` changed; every frame carries the current ones.",
    "one_model": "A connection serves only the model of its first turn.",
    "diagnostics": "Ask the provider to compare each turn with the one before it; its word on the "
    "cache is in `provider_miss_reason`. Adds `prompt_cache_options.comparison_response_id` to "
    "requests for GPT-5.6 and later.",
    "max_frame_bytes": "A larger WebSocket frame goes over HTTP instead.",
    "connect_timeout": "Seconds to open a connection.",
    "first_event_timeout": "Seconds from the request to the first event.",
    "idle_timeout": "Seconds between two events.",
    "answer_timeout": "Seconds for an answer that is not streamed.",
    "drain_timeout": "Seconds an upstream is read on after its client has left.",
    "ping_idle_after": "Seconds of silence after which a connection is pinged before its use.",
    "ping_timeout": "Seconds to answer that ping.",
    "max_connection_age": "Seconds after which a connection is replaced.",
    "epoch_turns": "Turns after which a session's epoch is reset; 0 is never.",
    "retry_ambiguous": "Send a turn again that was lost before its first event; it may run twice.",
    "max_losses": "Lost connections in a row after which the upstream is used over HTTP.",
    "cooldown": "Seconds that it is then used over HTTP.",
    "rejected_cooldown": "Seconds over HTTP after an upgrade was refused with 426, 403 or 404; "
    "with `store`: seconds in which all goes as it came after a response was not kept.",
    "freeze": "An old tool output that differs from the seen one only in these keys, at any depth, "
    "is treated as the seen one.",
    "visible_keys": "As the setting of that name, for this upstream.",
}
_KINDS = {
    "continuation": kinds.choice("websocket", "store", "observe", "off"),
    "tools": kinds.choice("strict", "relaxed"),
    "freeze": kinds.KEYS,
}


def _policy_kind(name: str, default: Any) -> Kind:
    if name in _KINDS:
        return _KINDS[name]
    if isinstance(default, bool):
        return kinds.FLAG
    if isinstance(default, int):
        return kinds.integer(0)
    return kinds.NUMBER if isinstance(default, float) else kinds.WORDS


UPSTREAM_SETTINGS: tuple[Setting, ...] = (
    Setting("base_url", kinds.BASE_URL, None, UPSTREAM_HELP["base_url"]),
    Setting("preset", kinds.choice(*presets.PRESETS), presets.DEFAULT, UPSTREAM_HELP["preset"]),
    *(
        Setting(
            part.name,
            _policy_kind(part.name, part.default),
            part.default,
            UPSTREAM_HELP.get(part.name, ""),
        )
        for part in dataclasses.fields(Policy)
    ),
)
"""The keys of a table ``[upstreams.NAME]``: address, preset, and ``engine.model.Policy``."""
