"""What an import has come to, in lines that fit a screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from app.charts.chart import count
from app.importers.run import FileReport, Report
from app.ledger.imports import PURGED, TOO_OLD, Import
from app.ledger.rows import iso

_FILES = 6
"""Files that are told one by one: those with trouble first."""
_REASONS = 8
_NAMES = 3
_HINTS = {
    PURGED: "Take them all the same with --purged.",
    TOO_OLD: "Their sums may count them already (setting retain_rows_days).",
}


def text(report: Report) -> list[str]:
    """The lines; the last one says how to undo it."""
    lines: list[str] = []
    told = sorted(report.files, key=_calm)
    for file in told[:_FILES]:
        lines += _file(file)
    if len(told) > _FILES:
        lines.append(f"and {count(len(told) - _FILES, 'other file')}")
    lines += _reasons(report)
    if report.ignored:
        passed = count(report.ignored, "file")
        lines.append(f"Passed over: {passed} of formats that this version cannot import.")
    if report.strangers:
        tenants = count(report.strangers, "tenant")
        lines.append(
            f"The ledger did not know {tenants} of these rows: another credential, or another key "
            "file. Their sessions stand beside those that were there, not in them."
        )
    if report.unchanged:
        files = count(report.unchanged, "file")
        lines.append(f"Imported before, and unchanged: {files}.")
    if report.import_id is None:
        return lines if report.unchanged else [*lines, "There was nothing to import."]
    if report.merged:
        lines.append(_merged(report))
    counts = report.counts
    lines.append(
        f"{counts.new:,} new, {counts.known:,} known, {counts.skipped.total():,} skipped."
        + (f" Undo with: warmline import --undo {report.import_id}" if counts.new else "")
    )
    return lines


def _merged(report: Report) -> str:
    line = (
        f"{count(report.merged, 'call')} of these a gateway had seen: one row each, the gateway's."
    )
    if report.differing:
        line += f" Of {report.differing:,} the log has other token counts: the gateway's count."
    return line


def news(report: Report, now: int) -> list[str]:
    """What a look of a watch has brought, at ``now`` (epoch ms): nothing, if it is nothing new."""
    names = [printable(file.name, 60) for file in report.files if file.counts.new]
    lines = [
        f"{printable(file.name)}: {printable(file.failure, 300)}"
        for file in report.files
        if file.failure is not None
    ]
    if names:
        shown = ", ".join(names[:_NAMES]) + (", …" if len(names) > _NAMES else "")
        lines.append(f"{report.counts.new:,} new in {shown}")
    return [f"{iso(now)[:19]}Z  {line}" for line in lines]


def listing(found: Sequence[Import]) -> list[str]:
    """A line for each import, newest first."""
    return [
        f"{one.id}  {iso(one.started_at)[:19]}Z  {one.state:<11} {one.rows_new:>9,} new "
        f"{one.rows_known:>9,} known {one.skipped:>7,} skipped  {printable(one.names, 60)}"
        for one in found
    ]


def printable(text: str, limit: int = 100) -> str:
    """Text for a terminal, which obeys some characters."""
    shown = "".join(mark if mark.isprintable() else "\ufffd" for mark in text)
    return cut(shown, limit)


def cut(text: str, width: int) -> str:
    """As much of a text as fits."""
    return text if len(text) <= width else text[: width - 1] + "…"


def _calm(file: FileReport) -> tuple[bool, int]:
    return file.failure is None, -file.counts.skipped.total()


def _file(file: FileReport) -> list[str]:
    name = printable(file.name)
    if file.format is None:
        return [f"{name}: {printable(file.failure or '', 300)}"]
    counts = file.counts
    lines = [f"{name} ({file.format}): {counts.new:,} new, {counts.known:,} known"]
    if counts.skipped:
        lines[0] += f", {counts.skipped.total():,} skipped"
    if file.failure is not None:
        lines.append(f"  {printable(file.failure, 300)} What came before is imported.")
    return lines + [f"  {printable(remark, 300)}" for remark in file.remarks[:2]]


def _reasons(report: Report) -> list[str]:
    """Why records were skipped, the most frequent first, with the first lines of each."""
    whole: Counter[str] = report.counts.skipped
    lines = []
    for why, times in whole.most_common(_REASONS):
        line = f"  {times:,} skipped: {why}"
        places = [
            f"{printable(file.name, 40)}:{number}"
            for file in report.files
            for number in file.examples.get(why, [])
        ]
        if places:
            line += f" ({', '.join(places[:3])}{', …' if times > 3 else ''})"
        lines.append(f"{line}. {_HINTS[why]}" if why in _HINTS else f"{line}.")
    if len(whole) > _REASONS:
        rest = sum(times for _, times in whole.most_common()[_REASONS:])
        lines.append(f"  {rest:,} skipped for other reasons.")
    return lines
