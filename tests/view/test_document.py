"""A value as a document: Markdown, chats and mails, each piece of text with its place in the source."""

from __future__ import annotations

import pytest

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.document import Block, Document, document
from tests.support.newsroom import FIRST


def words(block: Block) -> str:
    lines = ["".join(piece.text for piece in line) for line in block.lines]
    return "\n".join(lines)


def blocks(shown: Document) -> list[Block]:
    return [block for part in shown for block in part.blocks]


def test_markdown_becomes_headings_paragraphs_lists_and_tables():
    shown = blocks(document("draft", FIRST))
    assert [(block.kind, block.level) for block in shown] == [
        ("heading", 1), ("text", 0), ("heading", 2), ("text", 0), ("text", 0), ("table", 0), ("heading", 2),
        ("text", 0), ("text", 0),
    ]  # fmt: skip
    assert words(shown[1]).startswith("A report for the city council, draft for review. See the minutes")
    assert shown[-1].first == "• "
    assert shown[5].aligned == ("", "right")


@pytest.mark.parametrize(
    "text",
    [
        "See [it].\n\n[it]: https://example.org/target 'secret title'",
        ">" * 60 + " deeply nested",
        "- " * 60 + "deeply nested",
        "[a](https://example.org 'another title')",
        "```python and more\nx\n```",
        "![seen](https://example.org/picture.png 'its title')",
        "<!-- a comment -->\n\n<div hidden>text</div>",
        "a  \nb\\\nc &copy; d",
        "Setext\n===\n\n***\n\n[^1]: footnote",
    ],
)
def test_nothing_of_a_text_is_hidden(text: str):
    shown = " ".join(words(block) for block in blocks(document("draft", text)))
    for word in (
        "secret",
        "deeply",
        "nested",
        "another",
        "title",
        "more",
        "picture",
        "comment",
        "hidden",
        "note",
    ):
        assert (word in shown) == (word in text)


def test_a_link_says_where_it_leads():
    (block,) = blocks(document("draft", "Go to [your bank](https://evil.example/bank)."))
    assert words(block) == "Go to your bank (https://evil.example/bank)."


@pytest.mark.parametrize(
    "text",
    [
        FIRST,
        "a &amp; b \\* c `code` *em*",
        "> quoted\n> text\n\n1. one\n   - two\n\n```python\nif x:\n    return 'a'\n```",
        "| a | b |\n|---|---|\n| one two | three |\n",
        "Line one of a poem\nLine two of it",
        "\tindented\n\nتقرير. هل هذا صحيح؟ نعم.",
    ],
)
def test_each_piece_of_text_is_where_the_source_has_it(text: str):
    for part in document("draft", text):
        for block in part.blocks:
            for line in (*block.lines, *(cell for row in block.cells for cell in row)):
                for piece in line:
                    if piece.at >= 0 and piece.text.strip():
                        assert part.text[piece.at :].startswith(piece.text)


def test_lines_broken_by_their_width_are_joined_and_short_ones_kept():
    filled = "This line is as long as lines are that a width has broken,\nand it goes on."
    (block,) = blocks(document("draft", filled))
    assert words(block) == filled.replace("\n", " ")
    (poem,) = blocks(document("draft", "Roses are red\nviolets are blue"))
    assert words(poem) == "Roses are red\nviolets are blue"


def test_code_is_highlighted():
    (block,) = blocks(document("draft", "```python\ndef f():\n    return 'a'  # why\n```"))
    roles = {piece.text: piece.role for line in block.lines for piece in line}
    assert (roles["def"], roles["f"], roles["# why"]) == ("accent", "name", "dim")
    assert words(block) == "def f():\n    return 'a'  # why"


def test_html_is_shown_as_the_text_that_it_is():
    (block,) = blocks(document("draft", "<script>alert(1)</script> [b]bold[/b]"))
    assert words(block) == "<script>alert(1)</script> [b]bold[/b]"


@pytest.mark.parametrize("text", ["a\x1b[31m b", "# \x1b]0;x\x07", "- \u202eevil", "```\n\x1b[2J\n```"])
def test_no_control_character_is_left(text: str):
    for value in (text, [{"role": text, "content": text}], {"to": text, "subject": text, "body": text}):
        for block in blocks(document("draft", value)):
            assert not any(char in words(block) for char in "\x1b\x07\x9b\u202e")


def test_the_messages_of_a_chat_are_headed_by_who_said_them():
    chat = [
        {"role": "user", "content": "Is **this** right?"},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "search", "args": {"q": "crane"}}]},
        {"type": "ai", "name": "anna", "content": [{"type": "text", "text": "Yes."}]},
    ]
    shown = document("messages", chat)
    texts = [words(block) for block in blocks(shown)]
    assert texts[:2] == ["user", "Is this right?"]
    assert "calls search" in texts[3]
    assert '"crane"' in texts[3]
    assert texts[-2:] == ["ai · anna", "Yes."]
    assert shown[0].path == "messages[0].content"
    assert shown[-1].path == "messages[2].content[0].text"


def test_a_mail_begins_with_its_headers():
    text = "Dear all,\n\nhere are the minutes."
    mail = {
        "body": text,
        "to": ["a@x.org", "b@x.org"],
        "subject": "Minutes",
        "n": 1,
        "x": {},
    }
    shown = document("mail", mail)
    texts = [block.first + words(block) for block in blocks(shown)]
    assert texts[:3] == ["To       a@x.org, b@x.org", "Subject  Minutes", "N        1"]
    assert "Dear all," in texts
    assert texts[-1] == '{\n  "x": {}\n}'
    assert next(part for part in shown if part.path == "mail.body").raw == mail["body"]


def test_anything_else_is_json():
    (part,) = document("plan", {"a": [1, "two"]})
    assert part.path == "plan"
    assert words(part.blocks[0]) == part.text == '{\n  "a": [\n    1,\n    "two"\n  ]\n}'


def test_a_private_value_is_not_shown():
    assert [words(block) for block in blocks(document("draft", PRIVATE))] == ["[private]"]


def test_the_source_is_shown_line_by_line():
    shown = blocks(document("draft", FIRST, source=True))
    assert "\n".join(map(words, shown)) == FIRST


def test_places_in_the_raw_text_are_found_from_those_shown():
    (part,) = document("draft", "a\x1b[1m word\r\nnext")
    at = part.text.index("next")
    assert part.raw[part.raw_offset(at) :] == "next"
    assert part.clean_offset(part.raw.index("next")) == at
