"""Responses that the provider remembers: for continuation, for storage, and for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from .cache import Prompt
from .items import Item
from .wire import Json


@dataclass(frozen=True)
class Held:
    """A finished response and the conversation up to and with it."""

    response_id: str
    credential: str
    items: tuple[Item, ...]
    """Every input item of the chain and every output item, in order."""
    output: tuple[Item, ...]
    response: Json
    stored: bool
    """Kept beyond the connection, because ``store`` was true or absent."""
    warmup: bool
    connection: str | None
    prompt: Prompt | None = None
    """As the cache was shown it."""

    @cached_property
    def transcript(self) -> list[Json]:
        return [item.value for item in self.items]

    @property
    def texts(self) -> tuple[str, ...]:
        """The exact JSON text of each held item, as it was received or sent."""
        return tuple(item.text for item in self.items)


class Shelf:
    """All finished responses by id; the oldest go when there are more than ``limit``."""

    def __init__(self, limit: int | None) -> None:
        self._held: dict[str, Held] = {}
        self._items: dict[tuple[str, str], Item] = {}
        self._conversations: dict[tuple[str, str], tuple[Item, ...]] = {}
        self._limit = limit

    def __getitem__(self, response_id: str) -> Held:
        return self._held[response_id]

    def __iter__(self) -> Iterator[Held]:
        return iter(self._held.values())

    def put(self, held: Held) -> None:
        self._held[held.response_id] = held
        if held.stored:
            for item in held.items:
                identifier = item.value.get("id")
                if isinstance(identifier, str):
                    self._items[held.credential, identifier] = item
        while self._limit is not None and len(self._held) > self._limit:
            gone = self._held.pop(next(iter(self._held)))
            for item in gone.items if gone.stored else ():
                self._items.pop((gone.credential, str(item.value.get("id"))), None)

    def stored(self, response_id: str, credential: str) -> Held | None:
        """A response from storage; another customer's does not exist."""
        held = self._held.get(response_id)
        if held is None or not held.stored or held.credential != credential:
            return None
        return held

    def prompt(self, response_id: str, credential: str) -> Prompt | None:
        """Of any response of this customer's, stored or not: it is no content."""
        held = self._held.get(response_id)
        return held.prompt if held is not None and held.credential == credential else None

    def delete(self, response_id: str) -> None:
        del self._held[response_id]

    def item(self, credential: str, identifier: str) -> Item | None:
        return self._items.get((credential, identifier))

    def conversation(self, credential: str, name: str) -> tuple[Item, ...]:
        return self._conversations.get((credential, name), ())

    def converse(self, credential: str, name: str, items: tuple[Item, ...]) -> None:
        self._conversations[credential, name] = items

    @property
    def transcripts(self) -> Mapping[str, list[Json]]:
        return _Transcripts(self._held)


class _Transcripts(Mapping[str, list[Json]]):
    def __init__(self, held: Mapping[str, Held]) -> None:
        self._held = held

    def __getitem__(self, response_id: str) -> list[Json]:
        return self._held[response_id].transcript

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)
