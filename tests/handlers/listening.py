"""Listening clients receive changes of handlers, also after the node has lost its connection to the database.

    scripts/postgres run -- python listening.py

TIDEGATE_BINARY names the binary, TIDEGATE_RECORDINGS the folder for recordings.
"""

import os
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import anyio
from anyio.to_thread import run_sync
from bridged import LOGIN, ROOT, SCHEMA, Database, Node, run_node, tool, wait_until
from mcp import Client
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp_types import PromptListChangedNotification, ResourceListChangedNotification, ToolListChangedNotification
from python_checks import texts_of
from python_client import REVISIONS
from report import Report
from sdk import connect

# The limit for all checks of one mode.
CHECKS_SECONDS_MAX = 240
EVENTS_MAX = 10_000
BURST = 50
KINDS: dict[str, dict[str, Any]] = {
    "modern": {"tools": ToolsListChanged, "prompts": PromptsListChanged, "resources": ResourcesListChanged},
    "legacy": {
        "tools": ToolListChangedNotification,
        "prompts": PromptListChangedNotification,
        "resources": ResourceListChangedNotification,
    },
}
PROMPT = "BEGIN RETURN api.mcp_prompt_result('[]', (request).request_id); END"
RESOURCE = "BEGIN RETURN api.mcp_resource_result('[]', (request).request_id); END"
numbers = count()

# A legacy method of the client is deprecated; the tests use it deliberately.
warnings.simplefilter("ignore", DeprecationWarning)


class Listener:
    """The notifications of one client, modern or legacy."""

    def __init__(self, client: Client, kinds: dict[str, Any], events: Any) -> None:
        self.client, self._kinds, self._events = client, kinds, events

    async def names(self, kind: str = "tools") -> set[str]:
        client = self.client
        if kind == "tools":
            return {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}
        if kind == "prompts":
            return {prompt.name for prompt in (await client.list_prompts(cache_mode="refresh")).prompts}
        return {resource.name for resource in (await client.list_resources(cache_mode="refresh")).resources}

    async def wait_for(self, kind: str, is_so: Callable[[set[str]], bool]) -> None:
        """Waits for notifications until the list satisfies `is_so`.

        A notification of an earlier change may come first. A matching list without a notification does not count.
        """
        async for event in self._events:
            if isinstance(event, self._kinds[kind]) and is_so(await self.names(kind)):
                return
        raise AssertionError("the stream ended")


@asynccontextmanager
async def listening(node: Node, mode: str) -> AsyncIterator[Listener]:
    if mode != "legacy":
        async with connect(node, None, mode) as client:
            notifications = {"tools_list_changed": True, "prompts_list_changed": True, "resources_list_changed": True}
            async with client.listen(**notifications) as subscription:
                yield Listener(client, KINDS["modern"], subscription)
        return
    sender, receiver = anyio.create_memory_object_stream[Any](EVENTS_MAX)

    async def enqueue(message: Any) -> None:
        sender.send_nowait(message)

    with sender, receiver:
        async with connect(node, None, mode, message_handler=enqueue) as client:
            yield Listener(client, KINDS["legacy"], receiver)


def new_name() -> str:
    return f"came_{next(numbers)}"


async def query(database: Database, sql: str) -> str:
    """Queries the database in a thread, so that notifications are received meanwhile."""
    return await run_sync(database.query, sql)


async def register(database: Database, name: str, text: str = "here") -> None:
    await run_sync(database.register, *tool(name, text))


async def check_changes(database: Database, listener: Listener, report: Report) -> None:
    with report.check("a new tool is notified, listed and called"):
        name = new_name()
        await register(database, name)
        await listener.wait_for("tools", lambda names: name in names)
        assert texts_of(await listener.client.call_tool(name, {})) == ["here"]
    with report.check("a new description is notified, and the new body is used"):
        metadata, body = tool(name, "changed", description="It changed.")
        await run_sync(database.register, metadata, body)
        described: list[str | None] = []
        while "It changed." not in described:
            await listener.wait_for("tools", lambda names: name in names)
            described += [each.description for each in (await listener.client.list_tools(cache_mode="refresh")).tools]
        assert texts_of(await listener.client.call_tool(name, {})) == ["changed"]
    with report.check("a removed tool is notified and no longer listed"):
        assert await query(database, f"SELECT api.drop_mcp_handler('{name}')") == "t"
        await listener.wait_for("tools", lambda names: name not in names)
    with report.check("prompts and resources are notified in the same way"):
        prompt, resource = new_name(), new_name()
        await run_sync(database.register, {"type": "prompt", "name": prompt, "requiresAuth": False}, PROMPT)
        await listener.wait_for("prompts", lambda names: prompt in names)
        metadata = {"type": "resource", "name": resource, "uriTemplate": f"app:///{resource}", "requiresAuth": False}
        await run_sync(database.register, metadata, RESOURCE)
        await listener.wait_for("resources", lambda names: resource in names)
        await query(database, f"SELECT api.drop_mcp_handler('{prompt}'), api.drop_mcp_handler('{resource}')")
        await listener.wait_for("prompts", lambda names: prompt not in names)
        assert resource not in await listener.names("resources"), "two handlers that were removed together were not removed at once"
    with report.check("a tool is taken from a role"):
        name = new_name()
        await register(database, name)
        await listener.wait_for("tools", lambda names: name in names)
        await run_sync(database.register, *tool(name, "hidden", roles=["mcp_auditor"]))
        await listener.wait_for("tools", lambda names: name not in names)
    with report.check(f"{BURST} at once, each in its own transaction, are all listed"):
        burst = {new_name() for _ in range(BURST)}
        await run_sync(database.run_each, [database.registration(*tool(name, "x")) for name in burst])
        await listener.wait_for("tools", lambda names: burst <= names)


def block_node(database: Database) -> None:
    """Ends the connections of the node, and rejects new ones."""
    database.query(f"ALTER ROLE {LOGIN} NOLOGIN")
    database.query(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{LOGIN}'")
    backends = f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{LOGIN}'"
    wait_until(lambda: database.query(backends) == "0", "the node's connections are gone")


def unblock_node(database: Database) -> None:
    database.query(f"ALTER ROLE {LOGIN} LOGIN")


def restart() -> None:
    folder = os.environ["TIDEGATE_TEST_POSTGRES_FOLDER"]
    subprocess.run([str(ROOT / "scripts/postgres"), "restart", folder], check=True)


async def check_losses(database: Database, listener: Listener, report: Report) -> None:
    with report.check("a tool added while the node has no connection is notified afterwards"):
        name = new_name()
        await run_sync(block_node, database)
        await register(database, name)
        assert name not in await listener.names(), "it was seen without a connection"
        await run_sync(unblock_node, database)
        await listener.wait_for("tools", lambda names: name in names)
        assert texts_of(await listener.client.call_tool(name, {})) == ["here"]
    with report.check("and so is a removed tool"):
        await run_sync(block_node, database)
        await query(database, f"SELECT api.drop_mcp_handler('{name}')")
        assert name in await listener.names(), "the list was lost with the connection"
        await run_sync(unblock_node, database)
        await listener.wait_for("tools", lambda names: name not in names)
    with report.check("the node reconnects after its backend has ended"):
        name = new_name()
        await query(database, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{LOGIN}'")
        await register(database, name)
        await listener.wait_for("tools", lambda names: name in names)
    with report.check("a tool added while the server restarts is notified afterwards"):
        name = new_name()
        await run_sync(block_node, database)
        await run_sync(restart)
        await register(database, name)
        await run_sync(unblock_node, database)
        await listener.wait_for("tools", lambda names: name in names)
        assert texts_of(await listener.client.call_tool(name, {})) == ["here"]
    with report.check("and so is a tool added after the restart"):
        name = new_name()
        await run_sync(restart)
        await register(database, name)
        await listener.wait_for("tools", lambda names: name in names)


async def check(node: Node, database: Database, mode: str, report: Report) -> None:
    async with listening(node, mode) as listener:
        await check_changes(database, listener, report)
        await check_losses(database, listener, report)


def check_database_changes(report: Report) -> None:
    """Checks changes of the database and of the schema."""
    database = Database("coming")
    database.register(*tool("first", "here"))
    block_node(database)
    with run_node(database) as node:
        caller = node.caller()
        with report.check("a node starts without its database, and serves the handlers when it is available"):
            assert not caller.names()
            unblock_node(database)
            wait_until(lambda: "first" in caller.names(), "the handlers are there")
        with report.check("a dropped schema removes its handlers"):
            database.query(f"DROP SCHEMA {SCHEMA} CASCADE")
            wait_until(lambda: not caller.names(), "the handlers are gone")
        with report.check("a new installation adds handlers"):
            database.install()
            database.register(*tool("second", "here"))
            wait_until(lambda: caller.names() == {"second"}, "the handler is there")
    unblock_node(database)


async def main() -> int:
    report = Report()
    report.subject = "handlers, changes of the database"
    check_database_changes(report)
    database = Database("listening")
    with run_node(database) as node:
        for mode in REVISIONS:
            report.subject = f"handlers listening {mode}"
            with report.check("it completes"), anyio.fail_after(CHECKS_SECONDS_MAX):
                await check(node, database, mode, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(anyio.run(main))
