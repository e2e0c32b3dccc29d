"""What is changed on disk while a client listens: the configuration, and a table's file.

    changes.py tool NAME      offers a tool of that name
    changes.py table          gives the table `orders` a row more

A file is replaced whole, as an editor does. The folder and the configuration are those of `with_server.py`.
"""

import os
import sys
from pathlib import Path

NEW_TOOL = """\
  - name: {name}
    description: Came while clients listened.
    sql: SELECT 1 AS one
    database: shop
"""
# Before this section tools are added.
AFTER_TOOLS = "limits:\n"
NEW_ROW = "6,Ann,1,2024-03-02,came while clients listened\n"


def replace(file: Path, text: str) -> None:
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.rename(file)


def offer_tool(name: str) -> None:
    """Offers a tool more. One of that name must not be there."""
    file = Path(os.environ["TIDEGATE_CONFIGURATION"])
    tools, rest = file.read_text(encoding="utf-8").split(AFTER_TOOLS)
    replace(file, tools + NEW_TOOL.format(name=name) + AFTER_TOOLS + rest)


def add_row() -> None:
    """Gives `orders` a row more."""
    file = Path(os.environ["TIDEGATE_SHOP"]) / "orders.csv"
    replace(file, file.read_text(encoding="utf-8") + NEW_ROW)


if __name__ == "__main__":
    what, *names = sys.argv[1:]
    if what == "tool":
        offer_tool(*names)
    else:
        add_row()
