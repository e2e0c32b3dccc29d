"""The acceptance list of handlers inside PostgreSQL, through MCP: every line of `lines.py`, with and without an SDK.

    scripts/postgres run -- python acceptance.py

TIDEGATE_BINARY names the binary, TIDEGATE_RECORDINGS the folder for what is said.
"""

import sys

import anyio
import lines
import lines_authorization  # noqa: F401  each adds its checks
import lines_errors  # noqa: F401
import lines_lifecycle  # noqa: F401
import lines_protocol  # noqa: F401
import lines_round_trip  # noqa: F401
import sdk
from bridged import HERE, Database, served
from report import Report

# A tool of the file, whose name a handler has too: the file's counts, and the node starts.
MORE = """\
tools:
  - name: declared
    description: Of the configuration.
    database: shop
    sql: SELECT 'the configuration' AS said_by
"""


def check_doubles(world: lines.World, report: Report) -> None:
    with report.check("a handler with the name of a declared tool is left out, and hurts nobody"):
        caller = world.caller("staff")
        assert caller.listed("tools")["declared"]["description"] == "Of the configuration."
        assert "the configuration" in lines.text_of(caller.call("declared"))
        assert "echo" in caller.names()


def main() -> int:
    report = Report()
    report.subject = "handlers"
    database = Database("acceptance")
    database.run_file(HERE / "handlers.sql")
    database.run_file(HERE / "seed.sql")
    database.register({"type": "tool", "name": "declared", "description": "Of the database."}, "BEGIN RETURN NULL; END")
    with served(database, more=MORE) as node:
        world = lines.World(database, node)
        lines.run(world, report)
        check_doubles(world, report)
        anyio.run(sdk.check, node, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
