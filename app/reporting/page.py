"""A report as one page that holds all it needs: style, scripts, charts and the tables behind them.

It asks nobody for anything, and its content security policy has the browser see to that. Charts
are drawn by the dashboard's own modules; all else is there without any script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from sqlalchemy import Engine

from app.analysis import compaction, prices
from app.analysis.remedies import sentence
from app.analysis.verdict_words import GRADES, WORDS
from app.analysis.waste import usd
from app.charts.chart import Chart, count, percent
from app.charts.registry import CHARTS
from app.ledger.filters import Filter
from app.ledger.rows import iso
from app.paths import STATIC
from app.reporting.figures import Figures, dollars
from app.version import VERSION
from app.web.assets import plotly_path
from app.web.figures import LedgerSource

SHEETS = ("tokens", "base", "layout", "components", "pages", "report")
_MODULE = STATIC / "js" / "pages" / "report.js"
_IMPORT = re.compile(r"from \"([^\"]+)\"")
_NUMERIC = frozenset({"count", "ratio", "tokens", "ms"})
_THIN = "\u202f"


def page(engine: Engine, view: Filter, figures: Figures, *, now: int) -> str:
    """The page; ``now`` is in epoch milliseconds."""
    charts = _charts(engine, view, figures, now)
    scripts = _scripts()
    return (
        _templates()
        .get_template("report.html")
        .render(
            figures=figures,
            charts=[(CHARTS[slug], chart) for slug, chart in charts.items() if not chart.empty],
            nothing=[(CHARTS[slug], chart) for slug, chart in charts.items() if chart.empty],
            payloads=_json(
                {slug: chart.as_dict() | {"slug": slug} for slug, chart in charts.items()}
            ),
            style=Markup("\n".join(_sheet(name) for name in SHEETS)),  # noqa: S704  (files of ours)
            scripts=scripts,
            policy=_policy(scripts.values()),
            zone=str(view.zone),
            made=iso(now),
            version=VERSION,
            words=WORDS,
            grades=GRADES,
            sentence=sentence,
            advice=compaction.advice(figures.resets),
            price_list=prices.list_name(),
            thin=_THIN,
        )
    )


def _charts(engine: Engine, view: Filter, figures: Figures, now: int) -> dict[str, Chart]:
    """Over the time that there are turns of."""
    if figures.first_at is not None and figures.last_at is not None and view.by == "started":
        view = view.window(figures.first_at, figures.last_at + 1)
    source = LedgerSource(engine, view, now)
    return {slug: entry.build(source) for slug, entry in CHARTS.items()}


def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": number,
        "counted": lambda value, word: grouped(count(value, word)),
        "percent": lambda rate: "–" if rate is None else percent(rate).replace(" ", _THIN),
        "ms": milliseconds,
        "moment": lambda at, zone: moment(iso(at), zone),
        "cell": cell,
        "grouped": grouped,
        "code": code,
        "dollars": _money,
        "nano": lambda nano: _money(usd(nano)),
    }
    made.tests["numeric"] = lambda unit: unit in _NUMERIC
    return made


def _sheet(name: str) -> str:
    return (STATIC / "css" / f"{name}.css").read_text("utf-8")


def _scripts() -> dict[str, Markup]:
    """What runs, in its order. Modules become addresses that hold their own text, since the
    elements of a page cannot import each other."""
    modules = _closure(_MODULE)
    addresses = {
        path.name: "data:text/javascript;base64," + base64.b64encode(_bare(text).encode()).decode()
        for path, text in modules.items()
        if path != _MODULE
    }
    texts = {
        "boot": (STATIC / "js" / "boot-theme.js").read_text("utf-8"),
        "plotly": plotly_path().read_text("utf-8"),
        "map": json.dumps({"imports": addresses}),
        "page": _bare(modules[_MODULE]),
    }
    for name, text in texts.items():
        if re.search(r"</script|<!--", text, re.IGNORECASE):
            raise ValueError(f"the script {name} cannot stand in a page")
    return {name: Markup(text) for name, text in texts.items()}  # noqa: S704  (files of ours)


def _closure(start: Path) -> dict[Path, str]:
    """A module and all that it imports, with their text."""
    found: dict[Path, str] = {}
    queue = [start]
    while queue:
        path = queue.pop()
        if path not in found:
            found[path] = path.read_text("utf-8")
            queue += [(path.parent / to).resolve() for to in _IMPORT.findall(found[path])]
    return found


def _bare(text: str) -> str:
    """Its imports by the names of the map: an address of that kind has no neighbours."""
    return _IMPORT.sub(lambda found: f'from "{found[1].rsplit("/", 1)[-1]}"', text)


def _policy(scripts: Iterable[str]) -> str:
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes} data:; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _json(value: Any) -> Markup:
    """JSON that no text in it can end before its time."""
    return Markup(json.dumps(value).replace("<", "\\u003c"))  # noqa: S704


def _money(value: Decimal | None) -> str:
    return "–" if value is None else grouped(dollars(value))


def number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}".replace(",", _THIN)


def grouped(sentence: str) -> str:
    """A sentence of a chart, its digits grouped as on the page."""
    return re.sub(r"(\d),(?=\d{3}(?!\d))", rf"\1{_THIN}", sentence).replace(" %", f"{_THIN}%")


def code(text: str) -> Markup:
    """Text whose words in backticks are words of a program."""
    parts = [escape(part) for part in re.split(r"`([^`]+)`", text)]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part
        for number, part in enumerate(parts)
    )


def milliseconds(value: float | None) -> str:
    if value is None:
        return "–"
    if abs(value) < 999.5:
        return f"{value:.0f}{_THIN}ms"
    if abs(value) >= 120_000:
        return grouped(f"{value / 60_000:,.1f}") + f"{_THIN}min"
    return f"{value / 1_000:.{2 if abs(value) < 9_950 else 1}f}{_THIN}s"


def moment(text: str, zone: str) -> str:
    local = datetime.fromisoformat(text).astimezone(ZoneInfo(zone))
    return f"{local.day} {local:%b %Y %H:%M:%S}"


def cell(value: Any, unit: str, zone: str) -> str:
    """A cell of a chart's table, by the unit of its column."""
    if value is None:
        return "–"
    if unit == "flag":
        return "yes" if value else "no"
    if unit == "time":
        return moment(str(value), zone)
    if not isinstance(value, int | float):
        return str(value)
    if unit == "ratio":
        return percent(value).replace(" ", _THIN)
    if unit == "ms":
        return milliseconds(value)
    return number(value) if isinstance(value, int) else f"{value:.2f}"
