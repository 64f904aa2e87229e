"""A driver that plays a recorded tape: for tests of screens, and later for looking at exports."""

from __future__ import annotations
