"""Options that several commands share."""

from __future__ import annotations

import click

store_option = click.option(
    "--store", metavar="URL", help="Where threads are kept: sqlite:///FILE, a path, or memory:."
)
theme_option = click.option("--theme", metavar="NAME", help="The colours: dark, light or one of your own.")
reviewer_option = click.option("--reviewer", metavar="NAME", help="Your name beside what you decide.")
thread_option = click.option("--thread", metavar="ID", help="Name of the thread; made up when left out.")
