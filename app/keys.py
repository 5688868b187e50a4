"""The keyed hashes behind tenants, session keys and digests.

One secret of 32 bytes lies in a file beside the ledger. Without it nobody can tell from a ledger
which credential or session name a hash stands for. Losing it means that old and new rows of one
session no longer meet, so it is never replaced silently.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import LedgerError

logger = logging.getLogger(__name__)

KEY_BYTES = 32
HASH_LENGTH = 32
"""Hex digits of a hash: 128 bits, short enough for a URL."""


@dataclass(frozen=True, slots=True)
class Keys:
    secret: bytes = field(repr=False)
    _keyed: hmac.HMAC = field(init=False, repr=False, compare=False)
    """Where every hash begins: setting a key up costs more than most of what is hashed."""

    def __post_init__(self) -> None:
        keyed = hmac.new(self.secret, digestmod=hashlib.sha256)
        object.__setattr__(self, "_keyed", keyed)

    def derive(self, purpose: str, *parts: str | bytes) -> bytes:
        """32 bytes that depend on the secret, the purpose and every part.

        Each part is preceded by its length, so that ``("a:b", "c")`` and ``("a", "b:c")`` differ
        whatever the parts contain.
        """
        digest = self._keyed.copy()
        for part in (purpose, *parts):
            data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
        return digest.digest()

    def hmac(self, purpose: str, *parts: str | bytes) -> str:
        """``derive`` as 32 hex digits."""
        return self.derive(purpose, *parts).hex()[:HASH_LENGTH]

    def pseudonym(self, name: str) -> str:
        """What stands for a name that a client chose, where names are not to be shown."""
        return self.hmac("name", name)

    @property
    def fingerprint(self) -> str:
        """Tells whether two processes hold the same secret, without telling the secret."""
        return self.hmac("key-fingerprint")


def load(path: Path) -> Keys:
    """Read an existing key file: 64 hex digits."""
    try:
        text = path.read_text("ascii").strip()
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise LedgerError(
            "key_missing",
            f"The key file {path} does not exist.",
            "Copy it from the other machines, or create it once with: "
            f"(umask 077; openssl rand -hex 32 > {path})",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(
            "key_unreadable",
            f"The key file {path} cannot be read ({type(error).__name__}).",
            "It must be a text file of 64 hex digits that this user may read.",
        ) from None
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise LedgerError(
            "key_malformed",
            f"The key file {path} does not hold {KEY_BYTES * 2} hex digits.",
            "Restore it from a backup. A new key would part old rows from new ones.",
        )
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        logger.warning("the key file %s can be read by other users; chmod 600 it", path)
    return Keys(secret)


def load_or_create(path: Path) -> Keys:
    """Read the key file, or make it (mode 0600) when there is none.

    Two processes that start at once agree: the file appears whole or not at all, and who comes
    second reads the first one's.
    """
    if not path.exists():
        _create(path)
    return load(path)


def _create(path: Path) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, secrets.token_hex(KEY_BYTES).encode("ascii") + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)  # unlike rename, never replaces a key that came first
    except OSError as error:
        raise LedgerError(
            "key_unwritable",
            f"The key file {path} cannot be created ({type(error).__name__}).",
            "Make its directory writable, or name another place with the setting key_file.",
        ) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
