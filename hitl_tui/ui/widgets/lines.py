"""Widgets that draw rows of spans themselves (Line API): they cost only the rows on screen.

Text never goes through markup here. Spans come from the view, where they were sanitised; a span's
role becomes a style through the component classes of the screen (`role--NAME` in base.tcss).
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast

import msgspec
from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.modal import BaseScreen
from hitl_tui.view.rows import part_of
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import Line, Role, Span, plain_text

_STYLES: Final = Path(__file__).parent.parent / "screens" / "base.tcss"
ROLE_CLASSES: Final = frozenset(re.findall(r"\brole--[\w-]+", _STYLES.read_text("utf-8")))
"""Roles that have a style; a span of any other role looks like the text around it."""


def ours(text: str, role: str) -> Span:
    """Return a span of our own words in a role of the screens, which know more roles than the view."""
    return Span(text, cast(Role, role))


class RoleScreen(BaseScreen[Any]):
    """A screen that knows the style of every role."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(ROLE_CLASSES)

    @on(events.ScreenResume)
    def _keep_styles(self, event: events.ScreenResume) -> None:
        """Skip the styles of the first resume: they were applied a moment ago, as the screen was mounted."""
        if not self.is_laid_out:
            event.refresh_styles = False


_PLAIN: Final = Style.null()


def role_style(widget: Widget, role: str) -> Style:
    """Return the style of a role as the theme has it; with a background only if the theme gives it one."""
    return widget.screen.get_component_rich_style(f"role--{role}", partial=True, default=_PLAIN)


def strip_of(widget: Widget, line: Line, width: int, base: Style, offset: int = 0) -> Strip:
    """Return one row: the spans over a base style, cut or filled to `width` cells; a cut shows as "…"."""
    style_of = widget.screen.get_component_rich_style
    segments = [
        # Spans are already sanitised; this makes sure that nothing else can pass.
        Segment(
            sanitise(span.text, multiline=False),
            base + style_of(f"role--{span.role}", partial=True, default=_PLAIN),
        )
        for span in line
        if span.text
    ]
    strip = Strip(segments)
    length = strip.cell_length
    if offset:
        strip = strip.crop(min(offset, length), length)
        length = strip.cell_length
    if length > width:
        cut = strip.crop(0, max(0, width - 1))
        style = segments[-1].style or base
        return Strip([*cut, Segment("…", style)]).extend_cell_length(width, base)
    return strip.extend_cell_length(width, base)


# Textual takes the default styles of the first base that is a widget, so this one must be none.
if TYPE_CHECKING:
    _Mixin = Widget
else:
    _Mixin = object


class Kept(_Mixin):
    """Keep the strips until the next change: every paint of a screen asks all of its widgets."""

    _strips: tuple[Region, list[Strip]] | None = None

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the strips inside the crop."""
        if self._strips is None or self._strips[0] != crop:
            self._strips = crop, super().render_lines(crop)
        return self._strips[1]

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """Paint regions again, or all of it."""
        self._strips = None
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def notify_style_update(self) -> None:
        """Drop the strips: the styles have changed."""
        self._strips = None
        super().notify_style_update()


class Ground(_Mixin):
    """Draws its background alone: the panes cover all of it."""

    BLANK = True

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return empty rows."""
        return [Strip.blank(crop.width, self.rich_style)] * crop.height


class Room(Ground, Horizontal):
    """Row of panes that fill it."""


class Column(Ground, Vertical):
    """Column of panes that fill it."""


class LineBar(Kept, Widget):
    """One row that can't be scrolled: header, banner, footer, tabs."""

    DEFAULT_CSS = "LineBar { height: 1; }"
    ALLOW_SELECT = False

    @abstractmethod
    def bar(self, width: int) -> Line:
        """Return the spans to draw in `width` cells."""

    def render_line(self, y: int) -> Strip:
        """Draw the row."""
        width = self.size.width
        return strip_of(self, self.bar(width) if y == 0 else (), width, self.rich_style)


class Row(msgspec.Struct, frozen=True):
    """One visible row: its spans, the role of its background ("" for the widget's own), and how many
    cells of it are scrolled out at the left."""

    line: Line
    ground: str = ""
    offset: int = 0


class LineView(Kept, ScrollView, can_focus=True):
    """Scrolled list of rows, one of them selected if `cursor_row` is set.

    Only rows that differ from what is on screen are painted, and a layout is made only if the room
    that the list takes may differ: a run changes a few cells of each pane many times a second.
    """

    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("list.up", "scroll_up"),
        bound("list.down", "scroll_down"),
        bound("list.page_up", "page_up"),
        bound("list.page_down", "page_down"),
        bound("list.first", "scroll_home"),
        bound("list.last", "scroll_end"),
    ]

    _border_rows: tuple[Region, ...] | None = None

    class RowChosen(Message):
        """A row was chosen with the mouse, or with enter."""

        def __init__(self, view: LineView, row: int) -> None:
            super().__init__()
            self.view = view
            self.row = row

        @property
        def control(self) -> LineView:
            """List that sent it."""
            return self.view

    class Widened(Message):
        """The width of its rows has changed: what was wrapped for them must be wrapped again."""

        def __init__(self, view: LineView) -> None:
            super().__init__()
            self.view = view

        @property
        def control(self) -> LineView:
            """List that sent it."""
            return self.view

    def __init__(self, name: str, title: str = "") -> None:
        super().__init__(id=name)
        self._titles = ("", "")
        self._known_width = 0
        self.lines: Sequence[Line] = ()
        self.cursor_row: int | None = None
        self.heeds_keys = False
        """Whether the screen moves the cursor by its keys, so that the list never has the focus."""
        self._hidden = False
        self._painted: dict[int, Row] = {}
        self._at = (0, 0)
        self._cursor_role = "cursor-quiet"
        self._paint_style: Style | None = None
        self.set_titles(title)

    @property
    def rich_style(self) -> Style:
        """Style of the widget; it takes a walk up to the screen, so all rows of one paint share it."""
        return self._paint_style or super().rich_style

    def _note_position(self) -> None:
        """Note the position for all rows of a paint: each access to an attribute of Textual's is slow."""
        self._at = (round(self.scroll_x), round(self.scroll_y))
        self._cursor_role = "cursor" if self.has_focus or self.heeds_keys else "cursor-quiet"

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the strips of the visible rows."""
        self._note_position()
        self._paint_style = super().rich_style
        try:
            return super().render_lines(crop)
        finally:
            self._paint_style = None

    def show(self, lines: Sequence[Line], *, width: int = 0, home: bool = False) -> None:
        """Show these rows; `width` is that of the widest one if they can be scrolled sideways."""
        self.lines = lines
        self.set_extent(Size(width, len(lines)))
        if home:
            self.scroll_to(0, 0, animate=False)
        self.repaint()

    def set_extent(self, extent: Size) -> None:
        """Set how much there is to scroll.

        Textual lays the whole screen out for it. That is left out if neither the list's own size nor its
        scroll bars depend on it.
        """
        before, room = self.virtual_size, self.container_size
        if extent == before:
            return
        bars = [(size.width > room.width, size.height > room.height) for size in (before, extent)]
        if self.styles.auto_dimensions or not room or bars[0] != bars[1]:
            self.virtual_size = extent
            return
        self.set_reactive(Widget.virtual_size, extent)
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.window_virtual_size = extent.height
        if self.show_horizontal_scrollbar:
            self.horizontal_scrollbar.window_virtual_size = extent.width
        # Setting a position clamps it to the new extent.
        self.scroll_x, self.scroll_y = self.scroll_x, self.scroll_y

    def set_titles(self, title: str, subtitle: str = "") -> None:
        """Set the titles above and below in the border; never markup, and painted only if they differ."""
        above, below = self._titles
        self._titles = (title, subtitle)
        if title != above:
            with self._repainting_border(0):
                self.border_title = Content(sanitise_line(title, 60))
        if subtitle != below:
            with self._repainting_border(self.outer_size.height - 1):
                self.border_subtitle = Content(sanitise_line(subtitle, 60))

    @contextmanager
    def _repainting_border(self, y: int) -> Iterator[None]:
        """Repaint only the border row of a title; Textual would repaint the whole widget."""
        inside = self.content_offset
        self._border_rows = (Region(-inside.x, y - inside.y, self.outer_size.width, 1),)
        try:
            yield
        finally:
            self._border_rows = None

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """Paint regions again, or all of it."""
        only = regions if self._border_rows is None else self._border_rows
        return super().refresh(*only, repaint=repaint, layout=layout, recompose=recompose)

    def repaint(self) -> None:
        """Repaint the visible rows that have changed."""
        width = self.scrollable_content_region.width
        self._note_position()
        differ = (y for y in range(self.size.height) if self.visible_row(y) != self._painted.get(y))
        regions = [Region(0, y, width, 1) for y in differ]
        if regions:
            self.refresh(*regions)

    def reveal(self, row: int, rows: int | None = None) -> None:
        """Scroll to a row if it isn't visible; `rows` is how many fit, the height by default."""
        top, height = round(self.scroll_y), self.size.height if rows is None else rows
        if not top <= row < top + height:
            # At once: by the next refresh the rows, or the row to show, may be different.
            to = row if row < top else row - height + 1
            self.scroll_to(y=to, animate=False, immediate=bool(self.size))
        self.repaint()

    def turn_pages(self, by: int, *, kept: int = 2) -> None:
        """Scroll by pages as laid out at the time of each call, less the rows that stay in sight."""

        def scroll() -> None:
            self.scroll_relative(y=by * max(self.size.height - kept, 1), animate=False, immediate=True)

        self.call_after_refresh(scroll)

    def line(self, row: int) -> Line:
        """Return the spans of a row."""
        return self.lines[row]

    def ground(self, row: int) -> str:
        """Return the role of a row's background, "" for the widget's own; the cursor's row is highlighted."""
        if row == self.cursor_row:
            return self._cursor_role
        return ""

    def visible_row(self, y: int) -> Row:
        """Return what the visible row `y` shows."""
        row = self._at[1] + y
        if row >= len(self.lines):
            return _NOTHING
        return self.grounded(self.line(row), self.ground(row))

    def grounded(self, line: Line, ground: str) -> Row:
        """Return a line on its background; the cursor's has one colour for all texts."""
        if ground == "cursor":
            line = tuple(Span(span.text) for span in line)
        return Row(line, ground, self._at[0])

    def render_line(self, y: int) -> Strip:
        """Draw one visible row."""
        row = self._painted[y] = self.visible_row(y)
        base = self.rich_style + role_style(self, row.ground) if row.ground else self.rich_style
        line, number = row.line, self._at[1] + y
        selection = self.text_selection if self.ALLOW_SELECT else None
        if selection is not None and (span := selection.get_span(number)) is not None:
            line = with_selected(line, *span)
        strip = strip_of(self, line, self.scrollable_content_region.width, base, row.offset)
        return strip.apply_offsets(row.offset, number) if self.ALLOW_SELECT else strip

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text as it is shown."""
        first = selection.start.y if selection.start is not None else 0
        last = selection.end.y if selection.end is not None else len(self.lines) - 1
        rows = range(max(first, 0), min(last, len(self.lines) - 1, first + _MOST_SELECTED) + 1)
        texts = [self.selected_text(row, *span) for row in rows if (span := selection.get_span(row))]
        return "\n".join(texts).rstrip(), "\n"

    def rows_before_selection(self) -> list[Line]:
        """Return the rows down to where the selection begins; none without one, or if very many are above."""
        selection = self.text_selection
        if selection is None or selection.start is None or selection.start.y > _MOST_SELECTED:
            return []
        above = [self.line(row) for row in range(min(selection.start.y, len(self.lines)))]
        if selection.start.y >= len(self.lines):
            return above
        return [*above, part_of(self.line(selection.start.y), 0, selection.start.x)]

    def selected_text(self, row: int, start: int, end: int) -> str:
        """Return the text of a row between two of its characters; -1 is its end."""
        return plain_text(self.line(row))[start : None if end < 0 else end].rstrip()

    def row_at(self, event: events.MouseEvent) -> int | None:
        """Return the row under the mouse."""
        offset = event.get_content_offset(self)
        if offset is None:
            return None
        row = offset.y + round(self.scroll_y)
        return row if 0 <= row < len(self.lines) else None

    def on_click(self, event: events.Click) -> None:
        """Choose a row with the mouse."""
        row = self.row_at(event)
        if row is not None:
            self.post_message(self.RowChosen(self, row))

    def on_resize(self, event: events.Resize) -> None:
        """Report a new width, which is only known after a layout, for example of a pane that was hidden."""
        width = self.scrollable_content_region.width
        if width != self._known_width:
            self._known_width = width
            self.post_message(self.Widened(self))

    def on_show(self) -> None:
        """Paint what changed while it was hidden; the first time it is painted whole anyway."""
        if self._hidden:
            self._hidden = False
            self._painted.clear()
            self.refresh()

    def on_hide(self) -> None:
        """Forget the width: changes while it is hidden are laid out later."""
        self._hidden = True
        self._known_width = 0

    def on_focus(self) -> None:
        """Repaint the cursor, which looks different with focus."""
        self.repaint()

    def on_blur(self) -> None:
        """Repaint the cursor, which looks different without focus."""
        self.repaint()


_NOTHING: Final = Row(())
_MOST_SELECTED: Final = 100_000
"""Number of rows that can be copied at once."""


def with_selected(line: Line, start: int, end: int) -> Line:
    """Return a line with the characters from `start` to `end` highlighted; -1 is its end."""
    length = len(plain_text(line))
    end = length if end < 0 else end
    chosen = (Span(span.text, cast(Role, "selected")) for span in part_of(line, start, end))
    return (*part_of(line, 0, start), *chosen, *part_of(line, end, length))


class TextView(LineView):
    """Text whose rows can be selected with the mouse."""

    ALLOW_SELECT = True
