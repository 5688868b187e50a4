import html
import json
from urllib.parse import quote

import pytest

from app.alerts.scrub import REMOVED, Scrub
from tests.support.receiver import OTHER_SECRET, SECRET

PATH = "/services/T0CAN4RY/B00CAN4RY/path+canary=9f2c"
URL = f"https://hooks.example.com{PATH}?token=query&canary=77aa88&k=short"
scrub = Scrub(URL, [SECRET, OTHER_SECRET])


def without(text: str) -> str:
    return scrub(text.encode())


def escape(text: str, form: str) -> str:
    return "".join(form.format(ord(character)) for character in text)


def test_other_text_stays() -> None:
    for text in ("ok", '{"error": "no such hook", "id": 7}', "Zeile 1\nZeile 2 – ü", ""):
        assert text == without(text)


@pytest.mark.parametrize(
    "echo",
    [
        PATH,
        URL.partition("?")[2],
        "T0CAN4RY",
        "path+canary=9f2c",
        "canary=77aa88",
        PATH.lower(),
        PATH.upper(),
        quote(PATH),
        quote(PATH, safe=""),
        quote(quote(PATH, safe=""), safe=""),
        quote(PATH, safe="").lower(),
        PATH.replace("/", "\\/"),
        html.escape(URL.partition("?")[2]),
        escape(PATH, "%{:02X}"),
        escape(PATH, "\\u{:04x}"),
        escape(PATH, "&#{};"),
        escape(PATH, "&#x{:x};"),
        escape(PATH, "\\x{:02x}"),
        "\0".join(PATH),
        SECRET,
        SECRET.removeprefix("whsec_"),
        SECRET.removeprefix("whsec_").rstrip("="),
        OTHER_SECRET,
        quote(SECRET, safe=""),
        json.dumps(json.dumps(SECRET)),
    ],
)
def test_whatever_shows_the_address_or_a_secret_is_removed(echo: str) -> None:
    kept = without(f"<p>404: {echo} unknown</p>")
    assert REMOVED in kept
    assert kept.startswith("<p>404: ")
    assert kept.endswith(" unknown</p>")
    rest = kept.removeprefix("<p>404: ").removesuffix(" unknown</p>").replace(REMOVED, "")
    assert "" == rest.strip('"\\')


def test_a_secret_in_url_safe_base64_is_removed() -> None:
    secret = "whsec_" + "+/" * 16
    assert f"<{REMOVED}>" == Scrub("https://a.example/", [secret])(b"<" + b"-_" * 16 + b">")


def test_eight_characters_of_a_secret_are_too_many() -> None:
    part = SECRET.removeprefix("whsec_")[5:13]
    assert f"it begins like {REMOVED}." == without(f"it begins like {part}.")


@pytest.mark.parametrize("length", range(3, 30))
def test_what_the_end_cuts_off_is_removed(length: int) -> None:
    for whole in (PATH, SECRET.removeprefix("whsec_"), "T0CAN4RY"):
        assert f"POST {REMOVED}" == without(f"POST {whole[:length]}")


@pytest.mark.parametrize("cut", ["%", "%2", "\\", "\\u", "\\u00", "&", "&#", "&#4"])
def test_an_escape_that_is_cut_in_two_hides_nothing(cut: str) -> None:
    assert f"POST {REMOVED}" == without(f"POST /servic{cut}")


def test_bytes_that_are_no_text_and_controls_do_no_harm() -> None:
    assert "a\N{REPLACEMENT CHARACTER}b\nc" == scrub(b"a\xffb\n\x00\x1b\x07c")


def test_utf_16_is_seen_through() -> None:
    assert "canary" not in scrub(PATH.encode("utf-16-le")).lower()


def test_an_address_without_path_hides_nothing() -> None:
    assert "/ and /a" == Scrub("https://a.example/", [])(b"/ and /a")


def test_a_short_path_is_removed_as_a_whole() -> None:
    assert f"POST {REMOVED}: hi" == Scrub("https://a.example/hi", [])(b"POST /hi: hi")
