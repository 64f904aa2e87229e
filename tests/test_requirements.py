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
