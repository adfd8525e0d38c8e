"""The package: one version, consistent bounds, and a wheel that works without the repository."""

import os
import re
import runpy
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import headwater as hw

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOBODY = 65534  # the user without rights, on Linux and macOS

IMPORT_ALL = "import headwater as hw; print(hw.__file__); print(*[name for name in hw.__all__ if getattr(hw, name) is None])"


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def requirements(lines):
    """Oldest version by name."""
    return dict(re.fullmatch(r"([\w.-]+)(?:\[.*\])?\s*>=([\w.]+)", line).groups() for line in lines)


# Values that are written in several places


def test_the_version_is_that_of_the_package_everywhere():
    assert PROJECT["dynamic"] == ["version"]
    assert re.search(r"^version: (.+)$", text_of("CITATION.cff"), re.MULTILINE)[1] == hw.__version__
    assert re.search(r'set version = "(.+)"', text_of("recipe/meta.yaml"))[1] == hw.__version__
    assert f"## [{hw.__version__}]" in text_of("CHANGELOG.md")


def test_the_recipe_asks_for_what_the_package_asks_for():
    recipe = re.findall(r"^    - ([\w-]+ >=[\w.]+)$", text_of("recipe/meta.yaml"), re.MULTILINE)
    asked = requirements(line.replace("matplotlib-base", "matplotlib") for line in recipe)
    extras = PROJECT["optional-dependencies"]
    wanted = requirements([*PROJECT["dependencies"], *extras["plot"], *extras["remote"], *extras["dask"]])
    build = requirements(tomllib.loads(text_of("pyproject.toml"))["build-system"]["requires"])
    assert asked == {**wanted, **build, "python": PROJECT["requires-python"].removeprefix(">=")}


def test_one_bound_for_a_dependency_wherever_it_is_asked_for():
    groups = [PROJECT["dependencies"], *(lines for name, lines in PROJECT["optional-dependencies"].items() if name != "all")]
    pairs = [pair for lines in groups for pair in requirements(lines).items()]
    assert len(set(pairs)) == len(dict(pairs))


def test_lower_bounds_pin_every_dependency():
    lower_bounds = runpy.run_path(str(ROOT / ".ci" / "lower_bounds.py"))["lower_bounds"]
    pins = lower_bounds(["plot", "test"])
    asked = requirements(
        [*PROJECT["dependencies"], *(one for extra in ("plot", "test") for one in PROJECT["optional-dependencies"][extra])]
    )
    assert {re.sub(r"\[.*\]", "", pin.split("==")[0]): pin.split("==")[1] for pin in pins} == asked


def test_python_runs_the_package_as_the_command():
    done = subprocess.run([sys.executable, "-m", "headwater", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{hw.__version__}\n"


# The sdist and the wheel


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The sdist, and a wheel built from it."""
    pytest.importorskip("build")
    place = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--quiet", "--outdir", str(place), str(ROOT)], check=True)
    return place


@pytest.mark.slow
def test_the_sdist_and_the_wheel_hold_what_they_should(dist):
    pytest.importorskip("twine")
    files = sorted(dist.iterdir())
    assert [path.name for path in files] == [
        f"headwater-{hw.__version__}-py3-none-any.whl",
        f"headwater-{hw.__version__}.tar.gz",
    ]
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], check=True, stdout=subprocess.PIPE)
    with zipfile.ZipFile(files[0]) as wheel:
        held = set(wheel.namelist())
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    if any(tracked):  # not in an unpacked sdist
        ours = {name.removeprefix("src/") for name in tracked if name and (ROOT / name).exists()}
        assert {name for name in held if ".dist-info/" not in name} == ours
    assert "headwater/py.typed" in held and not [name for name in held if "__pycache__" in name or name.startswith("tests")]
    with tarfile.open(files[1]) as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"pyproject.toml", "LICENSE", "CITATION.cff", "SECURITY.md", "tests/test_package.py"} <= inside
    assert not [name for name in inside if name.endswith((".nbi", ".nbc", ".pyc"))]


@pytest.fixture(scope="module")
def clean():
    """Return the Python of an empty environment, in a directory that every user can read."""
    probe = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "threadpoolctl"]
    with tempfile.TemporaryDirectory() as place:
        if subprocess.run(probe, cwd=place, capture_output=True).returncode:
            pytest.skip("no package index can be reached")
        os.chmod(place, 0o755)
        venv.create(Path(place) / "venv", with_pip=True)
        yield Path(place) / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"


def install(python, wheel):
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True)


@pytest.mark.slow
def test_the_wheel_works_where_the_repository_is_not(dist, clean, tmp_path):
    (wheel,) = dist.glob("*.whl")
    install(clean, str(wheel))
    command = clean.with_name("headwater")
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA"))}

    def run(*arguments, **more):
        return subprocess.run(
            arguments, cwd="/" if more else tmp_path, env=alone, capture_output=True, text=True, check=True, **more
        ).stdout

    place, missing = run(clean, "-c", IMPORT_ALL).splitlines()
    assert Path(place).is_relative_to(clean.parents[1]) and missing == ""  # without any extra
    assert run(clean, "-m", "headwater", "--version") == f"{hw.__version__}\n"
    assert run(command, "demo", "--quick")
    if os.name != "nt":
        read_only(Path(place).parent)
        more = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        with tempfile.TemporaryDirectory() as writable:
            os.chmod(writable, 0o777)
            alone["HOME"] = str(Path(writable) / "missing")
            rows = Path(writable) / "rows.csv"
            rows.write_text("a,b\n" + "".join(f"{at % 7},{at % 5}\n" for at in range(200)), encoding="utf-8")
            rows.chmod(0o644)
            run(command, "fit", "gaussian", str(rows), "-k", "2", "-o", str(Path(writable) / "model.hw"), **more)
            assert (Path(writable) / "model.hw").exists()


def read_only(package):
    """Make a package read-only."""
    for path in [package, *package.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
