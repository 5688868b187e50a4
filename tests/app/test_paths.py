import importlib.util
from pathlib import Path

from app import paths


def test_in_a_checkout_static_and_alembic_stand_at_the_top():
    root = Path(__file__).resolve().parents[2]
    assert (root / "static", root / "alembic") == (paths.STATIC, paths.ALEMBIC)


def test_in_a_wheel_static_and_alembic_stand_inside_app(tmp_path: Path):
    package = tmp_path / "app"
    for name in ("static", "alembic"):
        (package / name).mkdir(parents=True)
    (package / "paths.py").write_text(Path(paths.__file__).read_text())
    spec = importlib.util.spec_from_file_location("packed_paths", package / "paths.py")
    packed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(packed)
    assert (package / "static", package / "alembic") == (packed.STATIC, packed.ALEMBIC)
