"""One item that the provider holds, whole or as a digest; what makes a client's item the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import msgspec
from msgspec import Raw

from engine import freezing, items
from engine.condensed import Condensed
from engine.errors import NotKept
from engine.freezing import Keys
from engine.reading import Reader
from engine.splitting import Fields, length_of, names_a_key_twice, object_of

_TEXT, _REASONING = Raw(b'""'), Raw(b'"reasoning"')
_PER_FORM, _PER_PART = 280, 35
_STATUS = len(',"status":')
_OUTPUT = b"_output"
_OPENS, _EMPTY = b"{[", 2
_TYPE_AND_TEXT = frozenset({"type", "text"})
_OF_A_TEXT = _TYPE_AND_TEXT | items.REGENERATED
_any = msgspec.json.Decoder()
_parts = msgspec.json.Decoder(list[dict[str, Raw]])


class HeldItem:
    """One item that the provider holds, and the client's latest proven spelling of it.

    Both are kept: equality under the projection is not transitive (an item without an id equals
    two with different ids), so that a new spelling has to be measured against what is held.
    ``sealed``: what is held was thrown away, and the proven spelling is the only one that counts.
    """

    __slots__ = (
        "_echo_key", "_expected", "_fields", "_model_made", "echo", "frozen", "held", "received",
        "sealed",
    )  # fmt: skip

    is_whole = True
    """Its bytes are kept; where they are not, ``held`` and ``echo`` raise ``NotKept``."""

    def __init__(
        self,
        held: Raw,
        *,
        received: bool,
        echo: Raw | None = None,
        frozen: bool = False,
        sealed: bool = False,
    ) -> None:
        self.held = held
        self.echo = held if echo is None else echo
        self.received, self.sealed = received, sealed
        self.frozen = frozen
        """It is a freeze policy that calls the echo the same (DESIGN 4.5)."""
        self._model_made: bool | None = True if received else None
        self._echo_key: tuple[bytes, str | None] | None = None
        self._expected: tuple[tuple[Fields, int], ...] = ()
        self._fields: Fields | None = None

    def _decoded(self) -> object:
        try:
            return items.parse(self.held)
        except (ValueError, RecursionError):
            return None

    @property
    def model_made(self) -> bool:
        if self._model_made is None:
            self._model_made = items.made_by_model(self._decoded())
        return self._model_made

    @property
    def kind(self) -> str:
        """The word for it in evidence."""
        return items.kind(self._decoded())

    @property
    def echo_key(self) -> tuple[bytes, str | None]:
        if self._echo_key is None:
            self._echo_key = items.echo_key(self._decoded())
        return self._echo_key

    def difference(
        self, now: Raw, freeze: Keys = (), read: Reader = items.parse
    ) -> items.Path | None:
        """Where the client's item parts from the held one; None if they are the same item.

        ``freeze`` is that of the upstream's policy, the same for the life of the item. ``read``
        gives what ``parse`` does.
        """
        if now in (self.held, self.echo) or self._is_alike(now):
            return None
        try:
            held, sent = read(self.held), read(now)
            if self._model_made is None:
                self._model_made = items.made_by_model(held)
            where = freezing.difference(held, sent, model_made=self.model_made, freeze=freeze)
        except (ValueError, RecursionError):
            return ()
        return () if where is None and self.sealed else where

    def freezes(self, now: Raw) -> bool:
        """Whether this proven spelling says something else of a tool's output than the held one."""
        if self.sealed:
            return self.frozen
        if now == self.held or _OUTPUT not in bytes(self.held):
            return False
        if now == self.echo:
            return self.frozen
        return self.difference(now) is not None

    def expect(self) -> None:
        """Work out the usual echoes beforehand: the fields as they are, with or without the id.

        Clients keep the bytes of most values. Equal bytes are equal values where those of the item
        name no key twice; and what would not equal even itself is left to ``difference``. Those
        that make items anew from what they model leave out the id, and of parts all but type and
        text.
        """
        try:
            value, fields = _unambiguous(self.held), object_of.decode(self.held)
            with_id, bare = items.equals_itself(value)
        except (ValueError, RecursionError):
            return
        fields.pop("status", None)
        without_id = {name: raw for name, raw in fields.items() if name != "id"}
        forms = [fields] if with_id else []
        if bare:
            forms.append(without_id)
            if (content := _plain_texts(fields.get("content"))) is not None:
                forms.append({**without_id, "content": content})
        self._expected = tuple((form, length_of(form)) for form in forms)

    def _is_alike(self, now: Raw) -> bool:
        """Whether it has fields that are known to be the same, byte for byte, each once."""
        if self.sealed:
            return False
        if self._expected:
            return self._is_expected(now)
        if self._fields is None:
            self._fields = _certain_fields(self.held) or {}
        return _fields_of(now) == self._fields != {}

    def _is_expected(self, now: Raw) -> bool:
        try:
            fields = object_of.decode(now)
        except (ValueError, RecursionError):
            return False
        length, status = len(now), fields.pop("status", None)
        if status is not None:
            text = bytes(status)
            if text[:1] != b'"' or not text.isascii():
                return False  # it may be no text at all
            length -= _STATUS + len(text)
        for form, shortest in self._expected:
            if fields == form:
                return length == shortest or _fields_of(now) is not None
        return False

    def spelled(self, now: Raw) -> HeldItem:
        """The same held item, with the client's spelling of it, in memory of its own.

        A slice keeps the whole body alive that it was cut from.
        """
        held, frozen = self.held.copy(), self.freezes(now)
        if now == self.held:
            echo = held
        else:
            echo = self.echo.copy() if now == self.echo else now.copy()
        if held is self.held and echo is self.echo:
            return self
        twin = HeldItem(held, received=self.received, echo=echo, frozen=frozen, sealed=self.sealed)
        twin._model_made, twin._echo_key = self._model_made, self._echo_key
        return twin

    def odd(self, now: Raw) -> Odd | None:
        """What has to be kept of it beside this proven spelling; None where that says it all."""
        if self.sealed:
            return Odd(None, self.received, self.frozen, sealed=True)
        if now == self.held:
            return Odd(None, received=True) if self.received else None
        if not self.received:
            try:
                if items.same_json(items.parse(self.held), items.parse(now)):
                    return None  # whatever equals the one equals the other
            except (ValueError, RecursionError):
                pass
        return Odd(self.held.copy(), self.received, self.freezes(now))

    @property
    def weight_of_expected(self) -> int:
        """Bytes in memory of the usual echoes: slices of what is held, and what maps them."""
        own = sum(len(form["content"]) for form, _ in self._expected[2:])
        return own + sum(_PER_FORM + _PER_PART * len(form) for form, _ in self._expected)

    @property
    def size(self) -> int:
        """Bytes of it in memory, without the objects around them."""
        echo = 0 if self.echo is self.held else len(self.echo)
        return len(self.held) + echo


def _unambiguous(raw: Raw) -> Any:
    """The item, decoded; its numbers in any form. Raises ``ValueError``.

    What is written again as it was read names no key twice: that is how most providers write, and
    is found out in a fifth of the time.
    """
    text = bytes(raw)
    try:
        value = _any.decode(text)
        if msgspec.json.encode(value) == text:
            return value
    except (msgspec.MsgspecError, RecursionError):
        pass
    return items.parse(raw)


def _plain_texts(content: Raw | None) -> Raw | None:
    """A content all of whose parts are texts, with nothing but type and text."""
    if content is None:
        return None
    try:
        parts = _parts.decode(content)
    except msgspec.MsgspecError:
        return None
    if not all(_TYPE_AND_TEXT <= part.keys() <= _OF_A_TEXT for part in parts):
        return None
    plain = (b'{"type":%b,"text":%b}' % (part["type"], part["text"]) for part in parts)
    return Raw(b"[%b]" % b",".join(plain))


def _fields_of(raw: Raw) -> Fields | None:
    """The fields of an item; None where it is no object, or names one of them twice."""
    text = bytes(raw)
    try:
        fields = object_of.decode(text)
        return None if names_a_key_twice(text, fields) else fields
    except (ValueError, RecursionError):
        return None


def _certain_fields(raw: Raw) -> Fields | None:
    """The fields of an item, if whatever has the same ones is the same under all rules.

    A reader of JSON finds the same in the same bytes, but for a key that stands twice somewhere;
    and reasoning has to be identified.
    """
    fields = _fields_of(raw)
    if fields is None:
        return None
    try:
        text = bytes(raw)
        if not text.isascii():
            text.decode("utf-8", "surrogatepass")
    except ValueError:
        return None
    return fields if _is_certain(fields) else None


def _is_certain(fields: Fields) -> bool:
    """Whether what has these fields, each once, equals what has the same ones."""
    type_ = fields.get("type", _TEXT)
    if b"\\" in bytes(type_) or (
        type_ == _REASONING
        and not any(_is_text(fields.get(name, _TEXT)) for name in ("id", "encrypted_content"))
    ):
        return False
    try:
        for value in fields.values():
            if len(value) > _EMPTY and memoryview(value)[0] in _OPENS:
                _unambiguous(value)
    except (ValueError, RecursionError):
        return False
    return True


def same_fields(held: Sequence[Raw], now: Sequence[Raw]) -> list[bool]:
    """Which of these pairs surely have the same fields, byte for byte; what is held is UTF-8.

    An object that is as long as its fields by themselves names none of them twice.
    """
    try:
        pairs = list(zip(*(map(object_of.decode, side) for side in (held, now)), strict=True))
    except (ValueError, RecursionError):
        return [False] * len(held)
    return [
        one == other and len(before) == len(after) == length_of(one) and _is_certain(one)
        for (one, other), before, after in zip(pairs, held, now, strict=True)
    ]


def _is_text(raw: Raw) -> bool:
    """Whether it is a text that is not empty."""
    return raw != _TEXT and bytes(memoryview(raw)[:1]) == b'"'


class Odd(NamedTuple):
    """What an item in a body does not say of the one that the provider holds in its place."""

    held: Raw | None
    """The bytes that the provider holds, where they differ."""
    received: bool
    frozen: bool = False
    sealed: bool = False
    """They differ, and were thrown away."""


AS_SPELLED = Odd(None, received=False)


class Digested(HeldItem):
    """An item of which only the digest is kept (``engine.condensed``)."""

    __slots__ = ("_table", "index")

    is_whole = False

    def __init__(self, table: Condensed, index: int) -> None:
        # Not its base's: ``held`` and ``echo`` are not there.
        self._table, self.index = table, index
        record = table[index]
        self.received, self.sealed, self.frozen = record.received, record.sealed, record.frozen

    def __getattr__(self, name: str) -> NoReturn:
        raise NotKept(f"only a digest is kept: no {name}")

    @property
    def digest(self) -> bytes:
        return self._table[self.index].digest

    def digest_of(self, now: Raw) -> bytes:
        """The digest that a client's item has beside it."""
        return self._table.digest(now)

    @property
    def kind(self) -> str:
        return self._table[self.index].kind

    @property
    def length(self) -> int:
        """Bytes of the client's spelling."""
        return self._table[self.index].length

    @property
    def model_made(self) -> bool:
        return self._table[self.index].model_made

    @property
    def echo_key(self) -> NoReturn:
        raise NotKept("only a digest is kept: no echo_key")

    def difference(
        self,
        now: Raw,
        freeze: Keys = (),  # noqa: ARG002
        read: Reader = items.parse,  # noqa: ARG002
    ) -> items.Path | None:
        return None if self.digest_of(now) == self.digest else ()

    def freezes(self, now: Raw) -> bool:  # noqa: ARG002
        return self.frozen

    def spelled(self, now: Raw) -> HeldItem:
        """The same held item, whose proven spelling is at hand again."""
        received, frozen, sealed = self.received, self.frozen, self._is_sealed(now)
        return HeldItem(now.copy(), received=received, frozen=frozen, sealed=sealed)

    def odd(self, now: Raw) -> Odd | None:
        sealed = self._is_sealed(now)
        if not sealed and not self.received:
            return None
        return Odd(None, self.received, self.frozen, sealed)

    def _is_sealed(self, now: Raw) -> bool:
        """Another spelling was proven by what has been thrown away since."""
        return self.sealed or self.difference(now) is not None

    @property
    def size(self) -> int:
        return 0
