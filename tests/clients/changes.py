"""Changes files while a client listens: the configuration, and the file of a table.

    changes.py tool NAME      adds a tool of that name
    changes.py table          adds a row to the table `orders`

Files are replaced atomically, as an editor does. The folder and the configuration are those of `with_server.py`.
"""

import os
import sys
from pathlib import Path

NEW_TOOL = """\
  - name: {name}
    description: Added while clients listened.
    sql: SELECT 1 AS one
    database: shop
"""
# The section after the tools.
AFTER_TOOLS = "limits:\n"
NEW_ROW = "6,Ann,1,2024-03-02,added while clients listened\n"


def replace(file: Path, text: str) -> None:
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.rename(file)


def add_tool(name: str) -> None:
    """Adds a tool. The name must not exist yet."""
    file = Path(os.environ["TIDEGATE_CONFIGURATION"])
    tools, rest = file.read_text(encoding="utf-8").split(AFTER_TOOLS)
    replace(file, tools + NEW_TOOL.format(name=name) + AFTER_TOOLS + rest)


def add_row() -> None:
    """Adds a row to `orders`."""
    file = Path(os.environ["TIDEGATE_SHOP"]) / "orders.csv"
    replace(file, file.read_text(encoding="utf-8") + NEW_ROW)


if __name__ == "__main__":
    what, *names = sys.argv[1:]
    if what == "tool":
        add_tool(*names)
    else:
        add_row()
