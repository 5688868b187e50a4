"""The load generator: connections that send prepared requests and look at what comes, no more.

One thread and one poll of all sockets; nothing of an answer is parsed but its stamps and its end.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.relaying.script import STAMP

_END = b"\r\n0\r\n\r\n"
_MODE = b"x-warmline-mode: "
_LONGEST_STAMP = 40
_SILENT_SECONDS = 60.0


class Lost(Exception):
    """A turn that was not answered to its end."""


@dataclass
class Seen:
    """What the turns of one measurement took, in nanoseconds."""

    first: list[int] = field(default_factory=list)
    """From the request's first byte to the answer's first event."""
    total: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    """From upstream to client, per event; only where the upstream paces them."""
    modes: dict[bytes, int] = field(default_factory=dict)
    opened: int = 0
    """Sessions that began with one of these turns."""
    lost: int = 0
    seconds: float = 0.0


class Client:
    """One connection, with one turn at a time."""

    def __init__(self, port: int, seen: Seen, *, stamps: bool = False) -> None:
        self.seen = seen
        self._stamps = stamps
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self.fileno = self._socket.fileno()
        self.ended: Callable[[Client], None] = lambda _: None
        self._unsent = memoryview(b"")
        self._head: bytes | None = None
        self._tail = b""
        self._began = 0

    def begin(self, request: bytes) -> bool:
        """Send what can be sent; False while a rest waits."""
        self._head, self._tail = b"", b""
        self._unsent = memoryview(request)
        self._began = time.monotonic_ns()
        return self.send()

    def send(self) -> bool:
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            return False
        return True

    def receive(self) -> bool:
        """Take what has come; True at the end of the turn."""
        data = self._socket.recv(1 << 18)
        now = time.monotonic_ns()
        if not data:
            raise Lost("the connection ended")
        if self._head is not None:
            self._head += data
            if b"data: " not in self._head:
                return False
            self.seen.first.append(now - self._began)
            self._look_at_head(self._head)
            data, self._head = self._head, None
        if self._stamps:
            self._read_stamps(data, now)
        self._tail = data[-7:] if len(data) >= 7 else (self._tail + data)[-7:]
        if self._tail == _END:
            self.seen.total.append(now - self._began)
            return True
        return False

    def _look_at_head(self, head: bytes) -> None:
        if not head.startswith(b"HTTP/1.1 200"):
            raise Lost(head[:300].decode(errors="replace"))
        at = head.find(_MODE)
        mode = b"-" if at < 0 else head[at + len(_MODE) : head.index(b"\r\n", at)]
        self.seen.modes[mode] = self.seen.modes.get(mode, 0) + 1

    _rest = b""

    def _read_stamps(self, data: bytes, now: int) -> None:
        data = self._rest + data
        end = 0
        for match in STAMP.finditer(data):
            self.seen.late.append(now - int(match[1]))
            end = match.end()
        self._rest = data[max(end, len(data) - _LONGEST_STAMP) :]

    def close(self) -> None:
        self._socket.close()


class Loop:
    """Drives clients; ``later`` holds what is to begin at a moment."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._clients: dict[int, Client] = {}
        self._later: list[tuple[float, Callable[[], None]]] = []
        self.running = 0

    def add(self, client: Client) -> None:
        self._clients[client.fileno] = client
        self._poll.register(client.fileno, select.EPOLLIN)

    def begin(self, client: Client, request: bytes) -> None:
        self.running += 1
        if not client.begin(request):
            self._poll.modify(client.fileno, select.EPOLLIN | select.EPOLLOUT)

    def at(self, moment: float, begin: Callable[[], None]) -> None:
        """Call ``begin`` at ``moment`` of the monotonic clock; in ascending order of moments."""
        self._later.append((moment, begin))

    def run(self) -> None:
        """Until no turn runs and none is to begin."""
        due = 0
        heard = time.monotonic()
        while self.running or due < len(self._later):
            wait = 1.0
            while due < len(self._later):
                moment, begin = self._later[due]
                wait = moment - time.monotonic()
                if wait > 0:
                    break
                begin()
                due, wait = due + 1, 1.0
            events = self._poll.poll(min(wait, 1.0))
            if events:
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENT_SECONDS:
                raise Lost(f"{self.running} turns are not answered")
            for fileno, event in events:
                self._on(self._clients[fileno], event)

    def _on(self, client: Client, event: int) -> None:
        if event & select.EPOLLOUT and client.send():
            self._poll.modify(client.fileno, select.EPOLLIN)
        if event & ~select.EPOLLOUT:
            try:
                ended = client.receive()
            except (Lost, OSError) as error:
                client.seen.lost += 1
                self.running -= 1
                self._poll.unregister(client.fileno)
                print(f"    lost: {str(error)[:60]!r}")
                return
            if ended:
                self.running -= 1
                client.ended(client)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._poll.close()
