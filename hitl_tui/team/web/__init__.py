"""The app in a browser: one process a page behind logins, on what textual-serve shows a terminal with."""
