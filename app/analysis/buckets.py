"""Cutting a range of time into buckets for a chart, in the viewer's zone.

An edge is an instant. Which instants are edges is decided by the zone's rules *at each instant*:

- Steps up to a quarter of an hour stand on a regular grid; every zone's offset is a multiple of a
  quarter, so the grid falls on round local times everywhere.
- Longer steps stand on round local times. A day of 23 or 25 hours is one day. The hour that is
  repeated when summer time ends is two buckets of an hour; the hour that is skipped is none.
- Buckets touch, do not overlap, and cover the range exactly, so that the sums over the buckets
  are the sums over the rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import pairwise

MAX_BUCKETS = 100
"""Enough for the eye, few enough that a rate in a bucket still means something."""

_SECOND = 1_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MIN_YEAR, MAX_YEAR = 2, 9998
"""One year short of what datetime can hold, so that no zone's offset can leave it."""
_FIRST_DAY = date(MIN_YEAR, 1, 1)
_LAST_DAY = date(MAX_YEAR, 12, 31)
_FIRST_INSTANT = (datetime(MIN_YEAR, 1, 2, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_LAST_INSTANT = (datetime(MAX_YEAR, 12, 30, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Step:
    """The distance of two edges. ``months`` is 0 for steps up to a week."""

    name: str
    milliseconds: int
    """Nominal; a local day may be longer or shorter."""
    months: int = 0


STEPS: tuple[Step, ...] = (
    Step("1 s", _SECOND),
    Step("5 s", 5 * _SECOND),
    Step("10 s", 10 * _SECOND),
    Step("30 s", 30 * _SECOND),
    Step("1 min", _MINUTE),
    Step("5 min", 5 * _MINUTE),
    Step("15 min", 15 * _MINUTE),
    Step("30 min", 30 * _MINUTE),
    Step("1 h", _HOUR),
    Step("2 h", 2 * _HOUR),
    Step("3 h", 3 * _HOUR),
    Step("6 h", 6 * _HOUR),
    Step("12 h", 12 * _HOUR),
    Step("1 day", _DAY),
    Step("1 week", 7 * _DAY),
    Step("1 month", 30 * _DAY, 1),
    Step("3 months", 91 * _DAY, 3),
    Step("1 year", 365 * _DAY, 12),
    Step("10 years", 3_652 * _DAY, 120),
    Step("100 years", 36_524 * _DAY, 1_200),
)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Half-open ``[start, end)`` in epoch milliseconds."""

    start: int
    end: int
    complete: bool
    """False where the range or the present cuts the bucket: its counts are not final or not
    comparable with those of its neighbours."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets of one range; never empty."""

    step: Step
    zone: tzinfo
    items: tuple[Bucket, ...]

    @property
    def edges(self) -> tuple[int, ...]:
        """All starts and the last end: one more than there are buckets."""
        return (*(bucket.start for bucket in self.items), self.items[-1].end)

    def index(self, instant: int) -> int | None:
        """Which bucket an instant lies in, or None outside the range."""
        if not self.items[0].start <= instant < self.items[-1].end:
            return None
        return bisect_right(self.edges, instant) - 1

    def label(self, bucket: Bucket) -> str:
        """The bucket's beginning in the viewer's zone, unmistakable also in a repeated hour."""
        local = _local(bucket.start, self.zone)
        if self.step.milliseconds >= _DAY:
            return f"{local:%a} {local.day} {local:%b %Y}"
        clock = "%H:%M:%S" if self.step.milliseconds < _MINUTE else "%H:%M"
        return f"{local.day} {local:%b %Y} {local.strftime(clock)} {local:%Z}".rstrip()


def cut(start: int, end: int, *, zone: tzinfo, now: int, limit: int = MAX_BUCKETS) -> Buckets:
    """Cut ``[start, end)`` (epoch ms) into at most about ``limit`` buckets of a round step.

    An empty or reversed range is one empty bucket at ``start``.
    """
    step = choose_step(end - start, limit)
    if end <= start:
        return Buckets(step, zone, (Bucket(start, start, complete=False),))
    natural = _natural_edges(start, end, step, zone)
    inner = [edge for edge in natural if start < edge < end]
    edges = [start, *inner, end]
    aligned = set(natural)
    items = tuple(
        Bucket(
            left,
            right,
            complete=left in aligned and right in aligned and right <= now,
        )
        for left, right in pairwise(edges)
    )
    return Buckets(step, zone, items)


def choose_step(length: int, limit: int = MAX_BUCKETS) -> Step:
    """The finest step of which at most ``limit`` fit into ``length`` milliseconds."""
    for step in STEPS:
        if length <= step.milliseconds * limit:
            return step
    return STEPS[-1]


def ticks(buckets: Buckets, *, limit: int = 8) -> tuple[list[int], list[str]]:
    """A few round instants of the range and what an axis calls them in the viewer's zone."""
    start, end = buckets.items[0].start, buckets.items[-1].end
    step = choose_step(max(end - start, buckets.step.milliseconds), limit)
    instants = [
        edge for edge in _natural_edges(start, end, step, buckets.zone) if start <= edge < end
    ]
    labels: list[str] = []
    previous: datetime | None = None
    for instant in instants:
        local = _local(instant, buckets.zone)
        labels.append(_tick(local, previous, step))
        previous = local
    return instants, labels


def _tick(local: datetime, previous: datetime | None, step: Step) -> str:
    """The time, and the date below it wherever it is new; only the date for long steps."""
    if step.months >= 12:
        return f"{local:%Y}"
    if step.months:
        return f"{local:%b %Y}"
    day = f"{local.day} {local:%b}"
    if step.milliseconds >= _DAY:
        new_year = previous is not None and previous.year != local.year
        return f"{day}<br>{local:%Y}" if new_year else day
    clock = local.strftime("%H:%M:%S" if step.milliseconds < _MINUTE else "%H:%M")
    if previous is None or previous.date() != local.date():
        return f"{clock}<br>{day}"
    if previous.utcoffset() != local.utcoffset():
        return f"{clock}<br>{local:%Z}"
    return clock


def _natural_edges(start: int, end: int, step: Step, zone: tzinfo) -> Sequence[int]:
    """The round instants from the last one at or before ``start`` to the first at or after
    ``end``, ascending."""
    if step.milliseconds <= 15 * _MINUTE:
        first = start - start % step.milliseconds
        last = -(-end // step.milliseconds) * step.milliseconds
        return range(first, last + 1, step.milliseconds)
    found: set[int] = set()
    for wall in _walls(_local(start, zone).date(), _local(end, zone).date(), step):
        found.add(_instant(wall, zone))
        if step.milliseconds <= _HOUR:
            found.add(_instant(wall.replace(fold=1), zone))
    edges = sorted(found)
    before = bisect_right(edges, start) - 1
    after = bisect_right(edges, end - 1)
    return edges[max(before, 0) : after + 1]


def _walls(first: date, last: date, step: Step) -> Iterator[datetime]:
    """Round local times around the given days, with one step to spare on either side."""
    if step.months:
        years = max(1, step.months // 12)
        for year in range(first.year // years * years - years, last.year + 2 * years, years):
            for month in range(1, 13, min(step.months, 12)):
                if MIN_YEAR <= year <= MAX_YEAR:
                    yield datetime(year, month, 1)  # noqa: DTZ001  (a wall, not an instant)
        return
    days = max(1, step.milliseconds // _DAY)
    day = max(first - timedelta(days=first.weekday() + 7 if days > 1 else 2), _FIRST_DAY)
    stop = min(last + timedelta(days=days + 1), _LAST_DAY)
    per_day = max(1, _DAY // step.milliseconds)
    while day <= stop:
        midnight = datetime.combine(day, time())
        for part in range(per_day):
            yield midnight + timedelta(milliseconds=part * step.milliseconds)
        day += timedelta(days=days)


def _local(instant: int, zone: tzinfo) -> datetime:
    held = min(max(instant, _FIRST_INSTANT), _LAST_INSTANT)
    return (_EPOCH + timedelta(milliseconds=held)).astimezone(zone)


def _instant(wall: datetime, zone: tzinfo) -> int:
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)
