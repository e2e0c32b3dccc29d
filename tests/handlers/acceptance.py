"""The acceptance list of handlers inside PostgreSQL, through MCP: every line of `lines.py`, with and without an SDK.

    scripts/postgres run -- python acceptance.py

TIDEGATE_BINARY names the binary, TIDEGATE_RECORDINGS the folder for recordings.
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
from bridged import HERE, Database, run_node
from report import Report

# A declared tool with the same name as a handler: the declared tool has precedence, and the node starts.
MORE = """\
tools:
  - name: declared
    description: Of the configuration.
    database: shop
    sql: SELECT 'the configuration' AS said_by
"""


def check_name_conflict(world: lines.World, report: Report) -> None:
    with report.check("a handler with the name of a declared tool is ignored, and does not affect others"):
        caller = world.caller("staff")
        assert caller.list_entries("tools")["declared"]["description"] == "Of the configuration."
        assert "the configuration" in lines.text_of(caller.call("declared"))
        assert "echo" in caller.names()


def main() -> int:
    report = Report()
    report.subject = "handlers"
    database = Database("acceptance")
    database.run_file(HERE / "handlers.sql")
    database.run_file(HERE / "seed.sql")
    database.register({"type": "tool", "name": "declared", "description": "Of the database."}, "BEGIN RETURN NULL; END")
    with run_node(database, more=MORE) as node:
        world = lines.World(database, node)
        lines.run(world, report)
        check_name_conflict(world, report)
        anyio.run(sdk.check, node, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
