"""How much of a limit is used up, in words."""

from __future__ import annotations

from hitl_tui.engine.log.events import LimitNear
from hitl_tui.view.format import cost, duration


def limit_line(alert: LimitNear) -> str:
    """As `75 % of the tokens are used: 7,600 of 10,000`."""
    used, allowed, what = f"{alert.used:,.0f}", f"{alert.allowed:,.0f}", alert.limit.partition("_")[2]
    if alert.limit == "max_cost_usd":
        used, allowed, what = cost(alert.used), cost(alert.allowed), "money"
        return f"{alert.percent} % of the {what} is used: {used} of {allowed}"
    if alert.limit == "max_seconds":
        used, allowed = duration(int(alert.used * 1e6)), duration(int(alert.allowed * 1e6))
        return f"{alert.percent} % of the time is used: {used} of {allowed}"
    return f"{alert.percent} % of the {what} are used: {used} of {allowed}"
