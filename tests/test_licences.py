"""The licences of what the wheel installs: read from metadata as `.ci/run` reads them."""

from __future__ import annotations

import importlib.util
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import ROOT

SPEC = importlib.util.spec_from_file_location("licences", ROOT / ".ci/licences.py")
assert SPEC is not None
assert SPEC.loader is not None
licences: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(licences)

GPL = "License :: OSI Approved :: GNU General Public License v3 (GPLv3)"
LGPL = "License :: OSI Approved :: GNU Lesser General Public License v3 (LGPLv3)"
MIT = "License :: OSI Approved :: MIT License"


class Site:
    """A folder of installed packages, where only their metadata is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, name: str, *fields: tuple[str, str]) -> None:
        info = self.folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        metadata = Message()
        for field, text in (("Name", name), ("Version", "1.0"), *fields):
            metadata[field] = text
        (info / "METADATA").write_text(metadata.as_string())


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(licences, "WHEEL", "our-wheel")
    return Site(tmp_path)


@pytest.mark.parametrize(
    ("fields", "extra", "allowed"),
    [
        ([("License-Expression", "MIT")], "", True),
        ([("License-Expression", "GPL-3.0-or-later")], "", False),
        ([("License-Expression", "GPL-3.0-or-later")], "fast", False),
        ([("License-Expression", "AGPL-3.0-only")], "fast", False),
        ([("License-Expression", "LGPL-3.0-only")], "", False),
        ([("License-Expression", "LGPL-3.0-only")], "fast", True),
        ([("License-Expression", "GPL-2.0-only OR MIT")], "", True),
        ([("License-Expression", "MIT AND (GPL-2.0-only OR AGPL-3.0-only)")], "fast", False),
        ([("License-Expression", "MIT AND (GPL-2.0-only OR BSD-3-Clause)")], "", True),
        ([("License-Expression", "GPL-2.0-only WITH Classpath-exception-2.0")], "", False),
        ([("License", "Apache-2.0 OR GPL-3.0-only")], "", True),
        ([("Classifier", MIT)], "", True),
        ([("Classifier", GPL)], "fast", False),
        ([("Classifier", MIT), ("Classifier", GPL)], "fast", False),
        ([("Classifier", LGPL)], "", False),
        ([("Classifier", LGPL)], "fast", True),
        ([("License", "Dual License"), ("Classifier", MIT)], "", True),
        ([("License", "GNU Affero General Public License")], "fast", False),
        ([("License", "the LGPL and, for tools, the GPL")], "fast", False),
        ([("License", "UNKNOWN"), ("Classifier", "License :: OSI Approved")], "", False),
        ([], "", False),
    ],
)
def test_the_licence_of_a_dependency_is_allowed_or_not(
    site: Site, capsys: pytest.CaptureFixture[str], fields: list[tuple[str, str]], extra: str, allowed: bool
) -> None:
    marker = f' ; extra == "{extra}"' if extra else ""
    site.install("our-wheel", ("Provides-Extra", "fast"), ("Requires-Dist", f"between{marker}"))
    site.install("between", ("License-Expression", "MIT"), ("Requires-Dist", "deep"))
    site.install("deep", *fields)
    assert licences.main() == (0 if allowed else 1)
    listed, problems = capsys.readouterr()
    assert [line.split()[0] for line in listed.splitlines()] == ["between", "deep"]
    assert ("deep 1.0, installed" in problems) is not allowed


def test_an_lgpl_package_that_an_extra_and_the_wheel_install_counts_for_the_wheel(site: Site) -> None:
    site.install(
        "our-wheel",
        ("Provides-Extra", "fast"),
        ("Requires-Dist", 'deep ; extra == "fast"'),
        ("Requires-Dist", "deep"),
    )
    site.install("deep", ("License-Expression", "LGPL-3.0-only"))
    assert licences.main() == 1


def test_a_package_for_another_system_is_left_out(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.install("our-wheel", ("Requires-Dist", 'elsewhere ; sys_platform == "another"'))
    assert licences.main() == 0
    assert capsys.readouterr().out == ""


def test_a_package_that_is_not_installed_is_named(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.install("our-wheel", ("Requires-Dist", "not-installed-here"))
    assert licences.main() == 2
    assert "not-installed-here is not installed" in capsys.readouterr().err
