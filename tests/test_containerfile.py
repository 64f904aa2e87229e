"""The image recipe names what there is: commands, options, extras; and runs as nobody in particular."""

from __future__ import annotations

import json
import re
import shlex
import tomllib

import click

from hitl_tui.cli.main import cli
from tests.support.places import ROOT

TEXT = (ROOT / "docs" / "Containerfile").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """Each instruction with its arguments, lines put together."""
    code = "\n".join(line for line in TEXT.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    return [
        (name, rest.strip()) for name, _, rest in (line.partition(" ") for line in code.splitlines()) if name
    ]


def test_images_have_versions_and_the_app_is_not_root() -> None:
    images = [rest.split()[0] for name, rest in instructions() if name == "FROM"]
    assert images
    assert all(re.fullmatch(r"[\w./-]+:\d[\w.-]+", image) for image in images)
    assert [rest for name, rest in instructions() if name == "USER"] == ["10001:10001"]


def test_extras_are_ours() -> None:
    extras = re.findall(r'"\.\[([\w,]+)\]"', TEXT)[0].split(",")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(extras) <= set(project["project"]["optional-dependencies"])


def test_all_that_the_wheel_is_made_of_is_copied_and_nothing_else_of_a_checkout() -> None:
    copied = {
        source
        for name, rest in instructions()
        if name == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    hook = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"]
    assert copied == {
        "pyproject.toml", "README.md", hook, *project["project"]["license-files"], *wheel["packages"],
        *wheel["force-include"],
    }  # fmt: skip
    assert all((ROOT / source).exists() for source in copied)


def test_what_the_image_runs_are_commands_with_these_options() -> None:
    entry = json.loads(next(rest for name, rest in instructions() if name == "ENTRYPOINT"))
    usual = json.loads(next(rest for name, rest in instructions() if name == "CMD"))
    assert entry == ["hitl-tui"]
    comment = TEXT.replace("\\\n#", " ")
    calls = [shlex.split(call) for call in re.findall(r"podman run .* hitl-tui (.+)", comment)]
    assert len(calls) == 4
    for call in (usual, *calls):
        command: click.Command | None = cli
        words = list(call)
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            command = command.get_command(click.Context(command), words.pop(0))
        assert command is not None, call
        known = {
            option for parameter in command.get_params(click.Context(command)) for option in parameter.opts
        }
        assert {word for word in words if word.startswith("--")} <= known
