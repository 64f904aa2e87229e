"""Give back a request that you claimed.

Others can answer it then. On screen, the key that claims it gives it back.

    hitl-tui unclaim r1
"""

from __future__ import annotations

from hitl_tui.engine.commands import Unclaim
from hitl_tui.verbs.attending import REQUEST, request_of, which_request, who_attends
from hitl_tui.verbs.conversation import At, Do, Talk, Verb


async def _talk(at: At) -> Talk:
    """Release a request."""
    snapshot, chosen = await at.driver.snapshot(), ""
    if (which := which_request(at, snapshot)) is not None:
        if (reply := (yield which)) is None:
            return
        chosen = reply.choice
    request = request_of(at, snapshot, chosen)
    released = yield Do(Unclaim(request.id, at.actor))
    yield await who_attends(at, request, () if released else ("nobody had claimed it",))


VERB = Verb(Unclaim, _talk, options=(REQUEST,))
