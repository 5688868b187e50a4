import gzip

import pytest

from app.errors import AppError
from app.web.assets import Assets, media_type, plotly_path, takes_gzip


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "js" / "lib").mkdir(parents=True)
    (tmp_path / "js" / "lib" / "a.js").write_text("export const a = 1;\n" * 50)
    (tmp_path / "tiny.svg").write_text("<svg/>")
    (tmp_path / ".hidden").write_text("secret")
    return tmp_path


def test_the_version_changes_with_any_content_and_any_name(folder):
    first = Assets(folder).version
    assert first == Assets(folder).version
    (folder / "tiny.svg").write_text("<svg />")
    second = Assets(folder).version
    (folder / "tiny.svg").rename(folder / "other.svg")
    assert len({first, second, Assets(folder).version}) == 3


def test_todays_folder_may_be_kept_and_an_older_one_still_serves_the_file(folder):
    assets = Assets(folder)
    asset, current = assets.find(assets.version, "js/lib/a.js")
    assert current
    assert gzip.decompress(asset.packed) == asset.body
    assert assets.find("0123", "js/lib/a.js") == (asset, False)


@pytest.mark.parametrize(
    "name", [".hidden", "js", "../secret", "js/lib/../../tiny.svg", "", "b.js"]
)
def test_nothing_but_the_files_that_were_there_is_served(folder, name):
    assets = Assets(folder)
    with pytest.raises(AppError) as caught:
        assets.find(assets.version, name)
    assert caught.value.status == 404


def test_what_would_not_shrink_is_sent_as_it_is(folder):
    assets = Assets(folder)
    assert assets.find(assets.version, "tiny.svg")[0].packed is None


def test_modules_are_javascript_on_every_machine():
    assert media_type("js/x.js") == "text/javascript; charset=utf-8"
    assert media_type("x.unheard-of") == "application/octet-stream"


def test_plotly_is_the_packages_own_file(folder):
    assets = Assets(folder)
    _, _, version, name = assets.plotly_url.split("/")
    asset, current = assets.find(version, name)
    assert current
    assert gzip.decompress(asset.packed) == plotly_path().read_bytes()
    assert len(asset.packed) < 2_000_000
    assert assets.plotly() is asset
    with pytest.raises(AppError):
        assets.find("plotly-0.0.0", name)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("gzip", True),
        ("br, gzip;q=0.8", True),
        ("*", True),
        ("GZIP", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
        ("br", False),
        ("", False),
    ],
)
def test_gzip_is_sent_only_to_whom_takes_it(header, expected):
    assert takes_gzip(header) is expected
