"""The pages, and the files that they load; they load none from elsewhere."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import Final

from hitl_tui.view.sanitise import sanitise

_HEAD: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/static/page.css">
"""

_TERMINAL: Final = (
    _HEAD
    + """<link rel="stylesheet" href="/static/xterm.css">
<script src="/static/textual.js"></script>
<script src="/static/page.js"></script>
</head>
<body>
<div id="connecting">connecting …</div>
<div id="terminal" class="textual-terminal" data-session-websocket-url="{socket}" data-font-size="14"></div>
<div id="ended" role="status">
<span>The session has ended.</span>
<button id="again" class="first" type="button">Start again</button>
<form method="post" action="/logout"><button>Log out</button></form>
</div>
</body>
</html>
"""
)

_LOGIN: Final = (
    _HEAD
    + """</head>
<body>
<main>
<h1>hitl-tui</h1>
{problem}<form method="post" action="/login">
<input type="hidden" name="to" value="{to}">
<label for="token">Your token</label>
<input id="token" name="token" type="password" autocomplete="current-password" maxlength="200" required
 autofocus>
<button class="first">Log in</button>
</form>
<p class="quiet">The person who runs this server gives you one.</p>
</main>
</body>
</html>
"""
)

_CONFIRM: Final = (
    _HEAD
    + """</head>
<body>
<main>
<h1>hitl-tui</h1>
<p>This link logs you in as <strong>{name}</strong>: what you decide here is {name}'s decision.
Continue only if that is you.</p>
<form method="post" action="/login">
<input type="hidden" name="to" value="{to}">
<input type="hidden" name="token" value="{token}">
<button class="first">Log in as {name}</button>
</form>
</main>
</body>
</html>
"""
)

_AGAIN: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>hitl-tui</title>
<meta http-equiv="refresh" content="0; url={to}"></head><body></body></html>
"""


def terminal_page(title: str, socket: str) -> str:
    """Return the page of a session.

    Args:
        title: the title of the window.
        socket: the address of its websocket.
    """
    return _TERMINAL.format(title=_text(title), socket=escape(socket))


def login_page(to: str, problem: str = "") -> str:
    """Return the page that asks for a token.

    Args:
        to: the path to open next.
        problem: why the last try failed.
    """
    alert = f'<p class="problem" role="alert">{_text(problem)}</p>\n' if problem else ""
    return _LOGIN.format(title="hitl-tui: log in", to=escape(to), problem=alert)


def confirm_page(name: str, token: str, to: str) -> str:
    """Return the page that asks a person who followed a link with a token to confirm who they are.

    Args:
        to: the path to open next.
    """
    who = _text(name)
    return _CONFIRM.format(title="hitl-tui: log in", name=who, token=escape(token), to=escape(to))


def again_page(to: str) -> str:
    """Return a page that redirects to a path of ours, so that browsers send the strict cookie."""
    return _AGAIN.format(to=escape(to))


def _text(text: str) -> str:
    return escape(sanitise(text, multiline=False))


_OURS: Final = "hitl_tui.team.web"
_THEIRS: Final = "textual_serve"
_FILES: Final = {
    "page.css": (_OURS, "page.css", "text/css"),
    "page.js": (_OURS, "page.js", "text/javascript"),
    "xterm.css": (_THEIRS, "css/xterm.css", "text/css"),
    "textual.js": (_THEIRS, "js/textual.js", "text/javascript"),
    "roboto-mono.ttf": (_THEIRS, "fonts/RobotoMono-VariableFont_wght.ttf", "font/ttf"),
    "roboto-mono-italic.ttf": (_THEIRS, "fonts/RobotoMono-Italic-VariableFont_wght.ttf", "font/ttf"),
}


def static_files() -> dict[str, tuple[bytes, str]]:
    """Return the content and media type of each static file by its name."""
    return {
        name: ((files(package) / "static" / place).read_bytes(), kind)
        for name, (package, place, kind) in _FILES.items()
    }
