"""The site: links have targets, the API reference is complete, and a fresh clone builds without a warning."""

import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from inspect import isclass, ismodule, isroutine
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")] if "generated" not in page.parts)
BUILT = (DOCS / "gallery", DOCS / "api" / "generated")  # written by the build
ROOMS = (
    "headwater",
    *(f"headwater.{name}" for name in ("checks", "plotting", "datasets", "checkpoints", "registry", "distributed")),
)


def find_links(text):
    """Return the files that links and pictures of a page point to."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"\]\(([^()\s]+)\)", re.sub(r"`[^`\n]*`", "", text))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def name_anchors(text):
    """Return the anchors of the headings of a page."""
    return {
        re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", text, re.M)
    }


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_of_a_page_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in find_links(text):
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if any(file.is_relative_to(place) for place in BUILT):
            continue
        assert file.exists(), f"{target} leads nowhere"
        assert not anchor or anchor in name_anchors(file.read_text(encoding="utf-8")), f"{target} names no heading"


def list_names(room):
    """Return the public functions and classes of a package."""
    module = import_module(room)
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name, one in vars(module).items() if getattr(one, "__module__", None) == room and name[0] != "_"]
    return [name for name in names if isclass(one := getattr(module, name)) or isroutine(one) or ismodule(one)]


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_reference(room):
    text = (DOCS / "api" / "index.md").read_text(encoding="utf-8")
    parts = re.split(r"currentmodule:: ([\w.]+)", text)
    listed = {}
    for module, part in zip(parts[1::2], parts[2::2], strict=True):
        listed.setdefault(module, set()).update(re.findall(r"^   (\w+)$", part, re.M))
    modules = {"datasets", "distributed", "outlier", "plotting"}  # which have sections of their own
    assert listed[room] == set(list_names(room)) - modules


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_has_an_example_that_runs(room):
    # The examples are docstring tests, which `make test` runs.
    module = import_module(room)
    named = {name: getattr(module, name) for name in list_names(room)}
    lacks = [name for name, one in named.items() if not ismodule(one) and ">>> " not in (one.__doc__ or "")]
    assert lacks == []


@pytest.mark.slow
def test_the_site_builds_from_a_fresh_clone(tmp_path):
    missing = [
        name
        for name in ("sphinx", "pydata_sphinx_theme", "numpydoc", "sphinx_gallery", "myst_parser")
        if find_spec(name) is None
    ]
    if missing:
        pytest.skip(f"the site needs {', '.join(missing)}: pip install '.[docs]'")
    subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(tmp_path / "clone")], check=True)
    options = ["-W", "--keep-going", "--quiet", "-b", "html", "-D", "plot_gallery=0"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, "docs", "build/docs"], cwd=tmp_path / "clone", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]
    for page in ("index", "get-started", "guide/mixtures", "api/generated/headwater.GaussianMixture", "changelog"):
        assert (tmp_path / "clone" / "build" / "docs" / f"{page}.html").is_file()
    scripts = [*(tmp_path / "clone" / "build" / "docs").rglob("*.html")]
    assert not [
        page for page in scripts if re.search(r'<(script|link)[^>]+(src|href)="https?://(?!.*canonical)', page.read_text())
    ]
