"""A report in a terminal: what fits one screen of 80 by 24. Pure.

Names come from logs, and a terminal obeys some characters: they are shown without those.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from app.analysis.verdict_words import WORDS
from app.analysis.witnesses import Layer
from app.charts.chart import count, percent
from app.importers.report import cut, printable
from app.ledger.cells import TokenTotals
from app.reporting.figures import Figures, Read, dollars

WIDTH = 80
HEIGHT = 23
"""One line is left for the prompt."""
_LABEL = 13
_SESSIONS = 3
_CAUSES = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOT_RECORDED = "not recorded"

Style = Callable[[str, str], str]
"""Text, and what it is (``title``, ``label``, ``bad``, ``good``): the text as it is shown."""


def plain(text: str, _what: str) -> str:
    return text


def text(figures: Figures, zone: ZoneInfo, style: Style = plain) -> list[str]:
    head = [*_head(figures, zone, style), ""]
    if not figures.summary.total:
        return [*head, figures.advice()]
    middle = [*_figures(figures, style), "", _missed(figures, style), *_cost(figures, style)]
    end = [*_benign(figures, style), *_first(figures, style)]
    sessions = _sessions(figures, style)
    room = HEIGHT - len(head) - len(middle) - len(end)
    whose, saving = _whose(figures, style), _saving(figures, style)
    for more in (saving, whose):  # what there is room for beside the causes
        if room - len(more) - min(1, len(sessions)) < _least(figures):
            more.clear()
        room -= len(more)
    while len(sessions) > 1 and room - len(sessions) < _least(figures):
        sessions.pop()
    causes = _causes(figures, room - len(sessions), style)
    return [*head, *middle, *whose, *causes, *sessions, *saving, *end]


def _head(figures: Figures, zone: ZoneInfo, style: Style) -> list[str]:
    read = figures.read
    of = f"{count(read.files, 'file')} ({', '.join(read.formats)})" if read.files else "the ledger"
    turns = f"{count(figures.summary.total, 'request')} of "
    turns += count(figures.summary.sessions, "session")
    lines = [style("Warmline report", "title") + cut(f": {of}, {turns}", WIDTH - 15)]
    if figures.first_at is not None and figures.last_at is not None:
        name = "UTC" if str(zone) == "UTC" else printable(str(zone))
        lines.append(f"{_at(figures.first_at, zone)} to {_at(figures.last_at, zone)}, {name}")
    if figures.only_sums:
        older = count(figures.only_sums, "older request")
        lines.append(f"Of {older} only sums are kept: they are in no verdict.")
    return [*lines, *_trouble(read, style)]


def _trouble(read: Read, style: Style) -> list[str]:
    lines: list[str] = []
    if read.failures:
        name, why = read.failures[0]
        more = f" And {len(read.failures) - 1:,} more." if len(read.failures) > 1 else ""
        said = f"Not read whole: {printable(name, 30)}. {printable(why)}"
        lines.append(style(cut(said, WIDTH - len(more)) + more, "bad"))
    rest: list[str] = []  # what may be cut off last
    if read.ignored:
        rest.append(f"{count(read.ignored, 'file')} of other kinds passed over.")
    if read.skipped:
        reasons = ", ".join(f"{why} ({number:,})" for why, number in read.skipped.items())
        rest.append(f"Skipped {count(sum(read.skipped.values()), 'record')}: {printable(reasons)}.")
    return lines + ([cut(" ".join(rest), WIDTH)] if rest else [])


def _figures(figures: Figures, style: Style) -> list[str]:
    summary, tokens, continuity = (
        figures.summary,
        figures.summary.tokens,
        figures.summary.continuity,
    )
    said = NOT_RECORDED
    if tokens.turns:
        said = _input(tokens, lambda number: f"{number:,}")
        if len(said) > WIDTH - _LABEL:
            said = _input(tokens, _compact)
    lines = _labelled("Input", said, style)
    if tokens.turns and tokens.unknown:
        lines.append(" " * _LABEL + f"usage of {count(tokens.unknown, 'turn')} unknown")
    cost = summary.cost
    if cost.usd is not None:
        said = f"about {dollars(cost.usd)} for all turns"
        if cost.unpriced:
            said += f" but {cost.unpriced:,} without a price"
        lines += _labelled("List price", said, style)
    known = [(mode, turns) for mode, turns in summary.modes if mode is not None]
    reasons = [(one.reason, one.turns) for one in summary.reasons if one.reason is not None]
    whole = continuity.generation
    if known or reasons:
        lines += _labelled("Modes", _shares(known, whole), style)
        lines += _labelled("Reasons", _shares(reasons, whole), style)
    else:
        lines += _labelled("Modes", f"{NOT_RECORDED}, and no reasons either", style)
    if continuity.eligible:
        said = f"{percent(continuity.mismatch_rate)}: {continuity.mismatches:,} of "
        said += count(continuity.eligible, "turn") + " that could have been continued"
        lines += _labelled("Mismatches", said, style)
    ttft = figures.ttft
    said = NOT_RECORDED
    if ttft is not None:
        said = f"p50 {_duration(ttft.median_ms)}, p95 {_duration(ttft.p95_ms)} "
        said += f"({count(ttft.samples, 'turn')})"
    return lines + _labelled("First token", said, style)


def _input(tokens: TokenTotals, shown: Callable[[int], str]) -> str:
    return (
        f"{shown(tokens.input)} tokens: {shown(tokens.cached)} cached "
        f"({percent(tokens.cached_ratio)}), {shown(tokens.non_cached)} not"
    )


def _shares(known: Sequence[tuple[str, int]], whole: int) -> str:
    """Shares of the whole, as many as fit."""
    if not known:
        return NOT_RECORDED
    unknown = whole - sum(turns for _, turns in known)
    parts = [*((printable(word, 30), turns) for word, turns in known), ("unknown", unknown)]
    shares = [f"{word} {percent(turns / whole)}" for word, turns in parts if turns]
    said = ", ".join(shares)
    while len(said) > WIDTH - _LABEL:
        shares.pop()
        said = ", ".join([*shares, "…"])
    return said


def _missed(figures: Figures, style: Style) -> str:
    label = style("Missed".ljust(_LABEL), "label")
    if figures.missed_rate is None:
        return f"{label}no turn had something to read again"
    said = f"{percent(figures.missed_rate)}: {figures.missed:,} of {figures.due:,} tokens "
    return label + style(said + "to be read again", "bad" if figures.missed else "good")


def _cost(figures: Figures, style: Style) -> list[str]:
    """What the misses cost, as much of it as fits one line: estimates."""
    losses = figures.losses
    if not losses.turns:
        return []
    if losses.cost_usd is None:
        said = "no price is known"
    else:
        said = f"about {dollars(losses.cost_usd)} at list prices"
        if losses.unpriced:
            said += f" ({count(losses.unpriced, 'turn')} without)"
    waited = losses.delay
    if waited is not None:
        low, high = _duration(waited.low), _duration(waited.high)
        more = f"; {_duration(waited.expected)} of waiting"
        for part in (f"{more} ({low} to {high})", more):
            if len(said) + len(part) <= WIDTH - _LABEL:
                said += part
                break
    return _labelled("Cost", said, style)


def _whose(figures: Figures, style: Style) -> list[str]:
    """Whose doing the misses were, as far as that is known."""
    if not figures.missed or not any(figures.layers.get(layer) for layer in _WHOSE):
        return []
    rest = figures.missed - sum(figures.layers.get(layer, 0) for layer in _WHOSE)
    parts = [(said, figures.layers.get(layer, 0)) for layer, said in _WHOSE.items()]
    shares = [
        f"{said} {percent(tokens / figures.missed)}"
        for said, tokens in (*parts, ("not known", rest))
        if tokens
    ]
    return _labelled("Whose", ", ".join(shares), style)


_WHOSE = {
    Layer.CLIENT: "the client's",
    Layer.PROVIDER: "the provider's",
    Layer.BETWEEN: "something between",
}


def _saving(figures: Figures, style: Style) -> list[str]:
    """What the remedy that saves most would have kept."""
    return [line for said in figures.saving()[:1] for line in _labelled("Saved by", said, style)]


def _least(figures: Figures) -> int:
    """Lines that the causes want before there is more than one session."""
    return 1 + min(_CAUSES, len(figures.causes)) + 1 if figures.causes else 0


def _causes(figures: Figures, room: int, style: Style) -> list[str]:
    causes = figures.causes
    if not causes:
        return []
    head = style("  missed  share  turns  how sure  why", "label")
    lead = 33
    blocks = []
    for cause, waste in causes:
        part = figures.share(waste)
        share = "–" if part is None else percent(part)
        row = f"{_compact(waste.tokens):>8}{_whole(share):>7}{waste.turns:>7,}  {cause.grade:<8}  "
        said = textwrap.wrap(cause.words.sentence, WIDTH - lead - 1)
        blocks.append([row + " " + said[0], *(" " * (lead + 1) + rest for rest in said[1:])])
    shown: list[str] = [head]
    for number, block in enumerate(blocks):
        left = len(blocks) - number
        spare = room - len(shown) - (1 if left > 1 else 0)
        if len(block) > spare:
            if len(shown) < room:
                rest = sum(waste.tokens for _, waste in causes[number:])
                shown.append(f"{_compact(rest):>8}  by {count(left, 'other cause')}")
            break
        shown += block
    return shown


def _benign(figures: Figures, style: Style) -> list[str]:
    """As many verdicts as fit one line, and how many turns are left."""
    found = [
        (turns, WORDS[verdict].title.lower() if verdict in WORDS else printable(verdict))
        for verdict, turns in figures.benign()
    ]
    if figures.unjudged:
        found.append((figures.unjudged, "not judged"))
    for most in range(len(found), 0, -1):
        rest = sum(turns for turns, _ in found[most:])
        shown = [f"{turns:,} {said}" for turns, said in found[:most]]
        said = ", ".join([*shown, *([count(rest, "other")] if rest else [])])
        if len(said) <= WIDTH - _LABEL or most == 1:
            return _labelled("No loss", said, style)
    return []


def _sessions(figures: Figures, style: Style) -> list[str]:
    lines = []
    for number, one in enumerate(figures.sessions[:_SESSIONS]):
        said = f"{_compact(one.missed)} in {one.losses:,} of {count(one.turns, 'turn')}"
        said = f"{said}  {printable(one.session or one.session_key, 38)}"
        more = f", {one.title.lower()}"
        if len(said) + len(more) <= WIDTH - _LABEL:
            said += more
        label = style(("Worst" if number == 0 else "").ljust(_LABEL), "label")
        lines.append(label + cut(said, WIDTH - _LABEL))
    return lines


def _first(figures: Figures, style: Style) -> list[str]:
    return _labelled("Do first", figures.advice(), style, most=4)


def _labelled(label: str, said: str, style: Style, *, most: int = 1) -> list[str]:
    room = WIDTH - _LABEL
    parts = textwrap.wrap(said, room)
    if len(parts) > most:
        parts = [*parts[: most - 1], cut(" ".join(parts[most - 1 :]), room)]
    return [
        (style(label.ljust(_LABEL), "label") if number == 0 else " " * _LABEL) + part
        for number, part in enumerate(parts)
    ]


def _at(instant: int, zone: ZoneInfo) -> str:
    moment = (_EPOCH + timedelta(milliseconds=instant)).astimezone(zone)
    return f"{moment:%Y-%m-%d %H:%M}"


def _duration(ms: float) -> str:
    if abs(ms) < 999.5:
        return f"{ms:,.0f} ms"
    return f"{ms / 1_000:.1f} s" if abs(ms) < 120_000 else f"{ms / 60_000:,.1f} min"


def _compact(tokens: int) -> str:
    """``12.3 k``: three digits and a unit."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if tokens >= size * 0.9995:
            value = tokens / size
            return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} {unit}"
    return f"{tokens:,}"


def _whole(share: str) -> str:
    """A share without its decimals, where it has some to lose."""
    number, _, sign = share.partition(" ")
    if not sign or float(number) < 1 or float(number) > 99:
        return share
    return f"{float(number):.0f} %"
