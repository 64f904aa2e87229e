"""What the tests are installed from: versions with hashes that fit what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKED = (ROOT / ".ci/requirements.txt").read_text()
PINS = {
    canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==([\w.+!-]+)", LOCKED, re.M)
}
WANTED = [Requirement(text) for text in
          (*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"])]  # fmt: skip


def test_every_dependency_is_locked_at_a_version_that_fits() -> None:
    misfits = [
        str(one) for one in WANTED if not one.specifier.contains(PINS.get(canonicalize_name(one.name), ""))
    ]
    assert misfits == [], "remake .ci/requirements.txt as CONTRIBUTING.md says"


def test_every_locked_version_has_hashes() -> None:
    entries = re.split(r"^(?=\w)", LOCKED, flags=re.M)[1:]
    assert len(entries) >= len(PINS) > len(WANTED)
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_compromised_versions_are_never_installed() -> None:
    litellm = next(one for one in WANTED if one.name == "litellm")
    assert not any(litellm.specifier.contains(version) for version in ("1.82.7", "1.82.8"))


def test_a_library_user_is_bound_by_no_upper_limit_but_the_screens() -> None:
    bound = [one.name for one in map(Requirement, PROJECT["project"]["dependencies"])
             if any(part.operator in ("<", "<=", "==", "~=") for part in one.specifier)]  # fmt: skip
    assert bound == ["textual"]


def test_no_file_names_the_host_of_a_package_registry() -> None:
    """Whoever installs from a mirror must find no other address in the project."""
    hosts = re.compile(r"(pypi|pythonhosted)\.org|registry\.npmjs|(deb\.)debian\.org|docker\.io|ghcr\.io")
    named = [
        path.relative_to(ROOT).as_posix()
        for path in (*ROOT.glob("*.*"), *(ROOT / ".ci").iterdir(), *(ROOT / "docs").rglob("*"))
        if path.is_file() and hosts.search(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert named == []


def test_installation_compiles_what_a_first_start_would() -> None:
    readme, recipe = (ROOT / "README.md").read_text(), (ROOT / "docs/Containerfile").read_text()
    commands = [
        line
        for line in (*readme.splitlines(), *recipe.splitlines())
        if re.search(r"uv pip install -|^uvx ", line)
    ]
    assert len(commands) == 4
    assert [line for line in commands if "--compile-bytecode" not in line] == []


def test_uv_builds_a_checkout_again_once_a_file_of_its_wheel_changes() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    keys = {key["file"] for key in PROJECT["tool"]["uv"]["cache-keys"]}
    assert keys == {
        "pyproject.toml",
        "README.md",
        *(f"{name}/**" for name in (*wheel["packages"], *wheel["force-include"])),
    }
