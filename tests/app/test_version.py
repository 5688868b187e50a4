from importlib.metadata import version

from app.version import VERSION


def test_the_version_is_the_packages():
    assert version("warmline") == VERSION
