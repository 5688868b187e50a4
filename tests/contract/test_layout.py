"""Each source file has its test file, where one looks for it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def without_test(package: str) -> list[str]:
    sources = sorted(p for p in (ROOT / package).rglob("*.py") if p.name != "__init__.py")
    assert sources
    own = [path.relative_to(ROOT) for path in sources]
    return [str(p) for p in own if not (ROOT / "tests" / p.parent / f"test_{p.name}").is_file()]


def test_every_source_file_has_its_test_file() -> None:
    assert without_test("app") + without_test("engine") == []


def test_no_directory_of_tests_is_a_package() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []
