"""The guides are true: their code runs, their commands, options and links exist, and nothing is left out."""

from __future__ import annotations

import re
import shlex
from itertools import count
from pathlib import Path

import click
import pytest

from hitl_tui import MemoryCheckpointer
from hitl_tui.cli.main import COMMANDS, cli
from hitl_tui.config import Settings, load_settings, user_themes
from hitl_tui.drivers.policies import read_policy
from hitl_tui.loading.sources import open_graph
from hitl_tui.loading.stage_file import read_script
from hitl_tui.ui.theme import Themes, theme_names
from hitl_tui.verbs.actions import BY_ID
from hitl_tui.verbs.keymap import load_keymap
from tests.support.places import ROOT
from tests.support.spec import SECTIONS
from tests.tools import key_page, role_page, spec_sections

README = ROOT / "README.md"
GUIDE = ROOT / "CONTRIBUTING.md"
DOCS = ROOT / "docs"
SPEC = DOCS / "spec"
PAGES = [README, *sorted(DOCS.glob("*.md")), *sorted(SPEC.glob("*.md"))]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
EVERYTHING = "\n".join(text for name, text in TEXTS.items() if name != "docs/spec/verify.md")
"""Without the page that quotes the format of an export, which looks like a command."""
LINK = re.compile(r"\]\(([^)\s]+)\)")


def blocks(language: str, text: str = EVERYTHING) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def command_lines() -> list[list[str]]:
    """Every `hitl-tui ...` of the guides, in a block or in a line, as arguments."""
    texts = [line for block in blocks("bash") for line in block.splitlines()]
    texts += re.findall(r"`(hitl-tui[^`]*)`", EVERYTHING)
    calls = {text[text.index("hitl-tui ") + 9 :] for text in texts if "hitl-tui " in text}
    return [shlex.split(call.partition(" #")[0]) for call in sorted(calls)]


def linked_from(page: Path) -> set[Path]:
    """The files to which a page links."""
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    return {(page.parent / target.partition("#")[0]).resolve() for target in targets}


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    lines = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("code", blocks("python"), ids=count(1))
def test_python_blocks_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs", "exec"), {"__name__": "__main__"})


def test_the_guide_builds_typed_channels_a_map_and_a_gate_in_under_40_lines() -> None:
    guide = [
        code for code in blocks("python") if ".add_map(" in code and "Gate(" in code and "schema=" in code
    ]
    assert guide
    assert all(code.count("\n") < 40 for code in guide)


@pytest.mark.parametrize("arguments", command_lines(), ids=" ".join)
def test_commands_and_options_exist(arguments: list[str]) -> None:
    if not arguments or arguments[0].startswith("-"):
        command: click.Command | None = cli
    else:
        command = cli.get_command(click.Context(cli), arguments[0])
    assert command is not None
    known = {option for parameter in command.get_params(click.Context(command)) for option in parameter.opts}
    for word in arguments[1:]:
        if isinstance(command, click.Group) and word in command.commands:
            command = command.commands[word]
            context = click.Context(command)
            known |= {option for parameter in command.get_params(context) for option in parameter.opts}
    assert {word.partition("=")[0] for word in arguments if word.startswith("-")} <= known


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    assert f"`hitl-tui {name}" in TEXTS["docs/command-line.md"]


def test_every_setting_is_documented() -> None:
    page = TEXTS["docs/configuration.md"]
    for field in Settings.__struct_fields__:
        if field in ("keys", "retention", "langgraph", "inbox", "notify"):
            assert f"| `{field}` | | " in page
        elif field not in ("origins", "key_places"):
            assert f"| `{field}` | `HITL_TUI_{field.upper()}` |" in page


def test_every_key_is_documented() -> None:
    assert TEXTS["docs/keys.md"] == key_page.page_text(), "python -m tests.tools.key_page writes it again"


def test_the_table_of_roles_is_that_of_the_actions_that_are_tested() -> None:
    assert role_page.table() in TEXTS["docs/roles.md"], "python -m tests.tools.role_page writes it again"


def test_the_keys_that_the_guides_explain_are_those_of_the_app() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| .*<!-- ([\w.]+) -->", EVERYTHING, re.MULTILINE)
    assert rows
    assert rows == [(BY_ID[name].key, name) for _, name in rows]


def test_the_settings_of_the_guide_are_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example names its file in its first line; those of one file are its parts."""
    files: dict[str, str] = {}
    for block in blocks("toml"):
        files[block.split()[1]] = files.get(block.split()[1], "") + block
    assert set(files) == {"config.toml", "themes/mine.toml", "flow.toml", "policy.toml", "show.toml"}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("HITL_TUI_CONFIG", str(tmp_path / "config.toml"))
    settings = load_settings()
    keymap = load_keymap(settings.keys)
    assert keymap.problems == ()
    assert keymap.configured == set(settings.keys)
    themes = Themes(user_themes())
    assert settings.theme in themes.names()
    assert [source.name for source in settings.inbox] == ["support", "", "agents"]
    assert themes.load("mine").theme.accent == "#ff9e64"
    assert [stop.title for stop in read_script(tmp_path / "show.toml").file.stops][
        -1
    ] == "Now a person decides."
    assert [rule.name for rule in read_policy(tmp_path / "policy.toml").rules] == ["approved drafts"]


def test_the_graph_file_of_the_guide_runs_to_its_question(tmp_path: Path) -> None:
    text = next(block for block in blocks("toml") if block.startswith("# flow.toml"))
    (tmp_path / "flow.toml").write_text(text, encoding="utf-8")
    runner = open_graph(str(tmp_path / "flow.toml"), MemoryCheckpointer())
    result = runner.invoke(thread_id="t")
    assert [request.title for request in result.pending] == ["Is it good enough?"]


def test_every_sample_is_named() -> None:
    page = TEXTS["docs/debugging.md"]
    table = page[page.index("| sample | shows |") :]
    names = {path.stem for path in (ROOT / "sample_graphs").iterdir() if path.suffix in (".py", ".toml")}
    assert {name for name in names if f"`{name}`" not in table} == set()


def test_the_themes_of_the_guide_are_ours() -> None:
    page = TEXTS["docs/configuration.md"]
    assert {name for name in theme_names() if f"`{name}`" not in page} == set()


@pytest.mark.parametrize("name", [*TEXTS, "CONTRIBUTING.md"])
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not anchor or anchor in headings(linked), target


def test_every_page_and_picture_is_linked_from_somewhere() -> None:
    linked = {
        (ROOT / name).parent.joinpath(target.partition("#")[0]).resolve()
        for name, text in TEXTS.items()
        for target in LINK.findall(text)
    }
    from_readme = linked_from(README)
    assert {page for page in DOCS.glob("*.md") if page not in from_readme} == set()
    assert {page for page in SPEC.glob("*.md") if page not in linked_from(SPEC / "README.md")} <= {
        SPEC / "README.md"
    }
    assert {picture for picture in (DOCS / "pictures").iterdir() if picture not in linked} == set()


@pytest.mark.slow
def test_code_cites_only_pages_that_exist() -> None:
    unknown = re.compile(r"\bSPEC \d|\bDESIGN\b|\bseed 00\d")
    for path in [*(ROOT / "hitl_tui").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        for page in re.findall(r"docs/[\w/-]+\.md", text):
            assert (ROOT / page).is_file(), f"{path} cites {page}"
        if path != Path(__file__):
            assert not unknown.search(text), f"{path} cites a document that is not in the repository"


def test_pictures_fetch_nothing() -> None:
    for picture in (DOCS / "pictures").glob("*.svg"):
        text = picture.read_text("utf-8")
        assert not re.search(r"(href|src|url\()\W*https?:|@import|@font-face|<image", text), picture.name


@pytest.mark.parametrize(("page", "kilobytes"), [(README, 10), (GUIDE, 8)], ids=["readme", "contributing"])
def test_what_is_read_first_is_short(page: Path, kilobytes: int) -> None:
    assert page.stat().st_size <= kilobytes * 1024


def test_every_benchmark_is_explained() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    for path in (ROOT / "tests" / "benchmarks").glob("*.py"):
        assert f"`{path.stem}`" in guide


def test_the_files_that_the_guide_to_the_code_names_are_there() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    how = guide[guide.index("## How to add") : guide.index("## Rules")] + TEXTS["docs/architecture.md"]
    for place in re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", how):
        assert (ROOT / place).exists() or (ROOT / "hitl_tui" / place).exists(), place


def test_the_specification_has_a_heading_for_each_section_that_tests_name() -> None:
    found = re.findall(r"^## (\d+)\. (.+)$", "\n".join(map(Path.read_text, SPEC.glob("*.md"))), re.MULTILINE)
    assert sorted(found) == sorted(SECTIONS.items())


@pytest.mark.slow
def test_every_section_of_the_specification_is_named_by_tests() -> None:
    named = spec_sections.tests_by_section()
    assert [section for section, tests in named.items() if not tests] == []
