"""Rules of the front end that can be read off its files, without a browser."""

from __future__ import annotations

import re

import pytest

from app.ledger.rows import COLUMNS
from app.paths import STATIC, TEMPLATES

MODULES = sorted((STATIC / "js").rglob("*.js"))
LIB = STATIC / "js" / "lib"
SHEETS = sorted((STATIC / "css").glob("*.css"))
PAGES = sorted(TEMPLATES.glob("*.html"))
COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl|oklch|oklab)a?\([^)v]*\d")
SERIES = [f"series-{number}" for number in range(1, 9)]


def read(path):
    return path.read_text(encoding="utf-8")


def name(path):
    return path.relative_to(STATIC if STATIC in path.parents else TEMPLATES).as_posix()


def users_of(pattern: str) -> set[str]:
    return {path.name for path in MODULES if re.search(pattern, code(read(path)))}


def code(text: str) -> str:
    """Without comments."""
    return re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*", "", text, flags=re.DOTALL)


def test_there_is_something_to_check():
    assert {"overview.js", "requests.js", "dom.js", "charts.js"} <= {path.name for path in MODULES}
    assert [
        "alerts.css",
        "base.css",
        "breaks.css",
        "components.css",
        "layout.css",
        "pages.css",
        "report.css",
        "requests.css",
        "sessions.css",
        "settings.css",
        "start.css",
        "tokens.css",
    ] == [path.name for path in SHEETS]


@pytest.mark.parametrize("path", [*MODULES, *SHEETS, *PAGES], ids=name)
def test_no_file_outgrows_one_idea(path):
    assert len(read(path).splitlines()) < 400


@pytest.mark.parametrize("path", [path for path in SHEETS if path.name != "tokens.css"], ids=name)
def test_colours_are_named_in_the_tokens_only(path):
    assert [] == COLOUR.findall(re.sub(r"/\*.*?\*/", "", read(path), flags=re.DOTALL))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_module_names_a_colour(path):
    text = code(read(path)).replace("rgba(0,0,0,0)", "")
    assert [] == re.findall(r"[\"']#[0-9a-fA-F]{3,8}[\"']|rgb\(\d", text)


def test_each_colour_is_given_once_for_both_themes_and_registered():
    text = read(STATIC / "css" / "tokens.css")
    given = re.findall(r"^\s+--([\w-]+): light-dark\(", text, re.MULTILINE)
    colours = [name for name in given if not name.startswith("shadow") and name != "scrim"]
    assert len(given) == len(set(given))
    registered = re.findall(r"@property --([\w-]+) \{ syntax: \"<color>\"", text)
    assert sorted(colours) == sorted(registered)
    assert {"surface", "ink", "muted", "accent", "ok", "warn", "bad", *SERIES} <= set(given)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_stands_out_from_every_ground_by_wcag_aa(theme):
    text = read(STATIC / "css" / "tokens.css")
    tokens = {
        name: pair[theme]
        for name, *pair in re.findall(
            r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", text
        )
    }
    grounds = ("page", "surface", "raised", "sunken", "hover")
    inks = ("ink", "muted", "accent", "ok", "warn", "bad")
    pairs = [(ink, ground) for ink in inks for ground in grounds]
    pairs += [(role, f"{role}-soft") for role in ("ok", "warn", "bad", "accent")]
    pairs += [("ink", "accent-soft"), ("muted", "accent-soft"), ("accent-ink", "accent")]
    assert [] == [pair for pair in pairs if contrast(*(tokens[name] for name in pair)) < 4.5]
    graphics = [*SERIES, "line-strong"]
    assert [] == [name for name in graphics if contrast(tokens[name], tokens["surface"]) < 3]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_one_module_each_fetches_opens_sockets_draws_and_makes_elements():
    assert {"api.js"} == users_of(r"\bfetch\(")
    assert {"live.js"} == users_of(r"new WebSocket")
    assert {"charts.js"} == users_of(r"Plotly")
    assert {"dom.js"} == users_of(r"createElement")


def test_no_module_writes_markup_or_runs_text():
    assert set() == users_of(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")  # fmt: skip


def test_no_module_leaves_a_global():
    assert set() == users_of(r"(?<!\()window\.\w+\s*=[^=]|globalThis")


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.name != "boot-theme.js"], ids=name
)
def test_each_module_is_type_checked_and_exports_by_name(path):
    text = read(path)
    assert text.startswith("// @ts-check\n")
    assert "export default" not in text
    for target in re.findall(r"from \"([^\"]+)\"", text):
        assert target.startswith(".")
        assert (path.parent / target).resolve().is_file(), target


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_no_page_holds_script_or_asks_another_host(path):
    text = read(path)
    assert [] == re.findall(r"<script(?![^>]*\ssrc=)[^>]*>|\son\w+=|https?://", text)


@pytest.mark.parametrize(
    "page",
    [
        "overview",
        "requests",
        "alerts",
        "settings",
        "import",
        "connect",
        "breaks",
        "break",
        "sessions",
        "session",
    ],
)
def test_a_page_announces_every_module_that_it_loads(page):
    loaded: set[str] = set()
    queue = [STATIC / "js" / "pages" / f"{page}.js"]
    while queue:
        for target in re.findall(r"from \"([^\"]+)\"", read(found := queue.pop())):
            path = (found.parent / target).resolve()
            module = str(path.relative_to(LIB).with_suffix(""))
            if module not in loaded:
                loaded.add(module)
                queue.append(path)
    announced = re.search(r"parts\.modules\(\(([^)]*)\)\)", read(TEMPLATES / f"{page}.html"))
    assert sorted(loaded) == sorted(re.findall(r"\"([\w/-]+)\"", announced.group(1)))


def test_every_icon_that_is_used_is_drawn():
    drawn = set(re.findall(r"<symbol id=\"([\w-]+)\"", read(STATIC / "img" / "icons.svg")))
    used = {
        name
        for path in [*MODULES, *PAGES]
        for name in re.findall(r"\bicon\(\"([\w-]+)\"\)", read(path))
    }
    assert set() == used - drawn
    assert {"ws_incremental", "ws_full", "http_full", "http_incremental"} <= drawn


def test_every_column_of_the_ledger_has_plain_words():
    """They name it in the list of columns to choose from."""
    words = dict(
        re.findall(r"\b(\w+): \"([^\"]+)\"", read(STATIC / "js/lib/requests/column-words.js"))
    )
    assert set(words) == set(COLUMNS)
    assert len(set(words.values())) == len(words)
