"""What no decision can leave out: the calls of libraries alone, on pieces that lie ready.

Bytes are compared, what is not known is decoded once and proven to be UTF-8, a frame is joined. No
code of the engine runs, so that each row of the benchmark can be held against what it cannot beat.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

Floor: TypeAlias = Callable[[], object]

_object = msgspec.json.Decoder(dict[str, Raw])
_list = msgspec.json.Decoder(list[Raw])


class _Fields(msgspec.Struct):
    input: list[dict[str, Raw]]


_fields = msgspec.json.Decoder(_Fields)


def _read(text: bytes, decoder: msgspec.json.Decoder[Any]) -> object:
    text.decode()
    return decoder.decode(text)


def each_respelled(one: bytes, other: bytes) -> Floor:
    """Both bodies are cut into the fields of their items, and these are compared."""
    return lambda: _fields.decode(one).input == _fields.decode(other).input


class Floors:
    """Those of one conversation; ``echoed`` and ``added`` are what the next turn brings."""

    def __init__(
        self,
        fields: Mapping[str, Any],
        items: Sequence[Any],
        new: Sequence[Any],
        dump: Callable[[Any], bytes],
    ) -> None:
        self._items = [Raw(dump(item)) for item in items]
        self._new, self._around = dump(new), dump(fields)
        self._twin = bytes(bytearray(b",".join(self._items)))
        self._spaced = b", ".join(self._items)
        self._dump = dump

    def _frame(self) -> bytes:
        return b"".join((self._around, self._new))

    def extends(self) -> Floor:
        """What is known is compared; what is new is read, and sent with the fields."""
        known = b",".join(self._items)
        return lambda: (known == self._twin, _read(self._new, _list), self._frame())

    def moved(self) -> Floor:
        """The fields are read, too: they stand in another order."""
        extends = self.extends()
        return lambda: (_read(self._around, _object), extends())

    def spaced(self) -> Floor:
        """So are they here, and the known items are put together with other gaps."""
        return lambda: (
            _read(self._around, _object),
            b", ".join(self._items) == self._spaced,
            _read(self._new, _list),
            self._frame(),
        )

    def some_respelled(self, turned: Callable[[Any], Any]) -> Floor:
        """Of the items in another spelling both sides are cut into fields, and compared."""
        extends = self.extends()
        held = self._items[5::10]
        sent = [self._dump(turned(json.loads(bytes(raw)))) for raw in held]
        return lambda: (
            extends(),
            [
                _object.decode(one) == _read(other, _object)
                for one, other in zip(held, sent, strict=True)
            ],
        )

    def evidence(self, held: Any, now: Any, text: str) -> Floor:
        """The two items are read, what differs in them has its digests, and all is sent."""
        sides, values = [self._dump(held), self._dump(now)], [held[text], now[text]]
        return lambda: (
            b",".join(self._items) == self._twin,
            [json.loads(side) for side in sides],
            [hashlib.blake2b(value.encode(), digest_size=8).digest() for value in values],
            _read(self._new, _list),
            b"".join((self._around, self._twin, self._new)),
        )
