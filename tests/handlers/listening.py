"""Clients that listen hear of handlers that come and go, also after the node has lost its connection to the database.

    scripts/postgres run -- python listening.py

TIDEGATE_BINARY names the binary, TIDEGATE_RECORDINGS the folder for what is said.
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
from bridged import LOGIN, ROOT, SCHEMA, Database, Node, served, tool, until
from mcp import Client
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp_types import PromptListChangedNotification, ResourceListChangedNotification, ToolListChangedNotification
from python_client import REVISIONS, texts_of
from report import Report
from sdk import connected

# Of all that is asked in one way; much longer than it takes.
CHECKS_SECONDS_MAX = 240
EVENTS_KEPT = 10_000
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

# A legacy method of the client is deprecated; here it is meant.
warnings.simplefilter("ignore", DeprecationWarning)


class Ear:
    """What one client hears, whatever its way of listening."""

    def __init__(self, client: Client, kinds: dict[str, Any], events: Any) -> None:
        self.client, self._kinds, self._events = client, kinds, events

    async def names(self, kind: str = "tools") -> set[str]:
        client = self.client
        if kind == "tools":
            return {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}
        if kind == "prompts":
            return {prompt.name for prompt in (await client.list_prompts(cache_mode="refresh")).prompts}
        return {resource.name for resource in (await client.list_resources(cache_mode="refresh")).resources}

    async def hears(self, kind: str, is_so: Callable[[set[str]], bool]) -> None:
        """Waits for notifications until the list is as it should be.

        A notification of an earlier change may come first; that the list was right before one came is no success.
        """
        async for event in self._events:
            if isinstance(event, self._kinds[kind]) and is_so(await self.names(kind)):
                return
        raise AssertionError("the stream ended")


@asynccontextmanager
async def listening(node: Node, mode: str) -> AsyncIterator[Ear]:
    if mode != "legacy":
        async with connected(node, None, mode) as client:
            wanted = {"tools_list_changed": True, "prompts_list_changed": True, "resources_list_changed": True}
            async with client.listen(**wanted) as heard:
                yield Ear(client, KINDS["modern"], heard)
        return
    sender, receiver = anyio.create_memory_object_stream[Any](EVENTS_KEPT)

    async def hear(message: Any) -> None:
        sender.send_nowait(message)

    with sender, receiver:
        async with connected(node, None, mode, message_handler=hear) as client:
            yield Ear(client, KINDS["legacy"], receiver)


def new_name() -> str:
    return f"came_{next(numbers)}"


async def ask(database: Database, sql: str) -> str:
    """The database is asked in a thread, so that notifications are heard meanwhile."""
    return await run_sync(database.ask, sql)


async def register(database: Database, name: str, text: str = "here") -> None:
    await run_sync(database.register, *tool(name, text))


async def check_changes(database: Database, ear: Ear, report: Report) -> None:
    with report.check("a tool that comes is heard of, listed and called"):
        name = new_name()
        await register(database, name)
        await ear.hears("tools", lambda names: name in names)
        assert texts_of(await ear.client.call_tool(name, {})) == ["here"]
    with report.check("its new description is heard of, and its new body counts"):
        metadata, body = tool(name, "changed", description="It changed.")
        await run_sync(database.register, metadata, body)
        described: list[str | None] = []
        while "It changed." not in described:
            await ear.hears("tools", lambda names: name in names)
            described += [each.description for each in (await ear.client.list_tools(cache_mode="refresh")).tools]
        assert texts_of(await ear.client.call_tool(name, {})) == ["changed"]
    with report.check("a tool that goes is heard of, and gone"):
        assert await ask(database, f"SELECT api.drop_mcp_handler('{name}')") == "t"
        await ear.hears("tools", lambda names: name not in names)
    with report.check("so are prompts and resources"):
        prompt, resource = new_name(), new_name()
        await run_sync(database.register, {"type": "prompt", "name": prompt, "requiresAuth": False}, PROMPT)
        await ear.hears("prompts", lambda names: prompt in names)
        metadata = {"type": "resource", "name": resource, "uriTemplate": f"app:///{resource}", "requiresAuth": False}
        await run_sync(database.register, metadata, RESOURCE)
        await ear.hears("resources", lambda names: resource in names)
        await ask(database, f"SELECT api.drop_mcp_handler('{prompt}'), api.drop_mcp_handler('{resource}')")
        await ear.hears("prompts", lambda names: prompt not in names)
        assert resource not in await ear.names("resources"), "two that go together did not go together"
    with report.check("a tool is taken from a role"):
        name = new_name()
        await register(database, name)
        await ear.hears("tools", lambda names: name in names)
        await run_sync(database.register, *tool(name, "hidden", roles=["mcp_auditor"]))
        await ear.hears("tools", lambda names: name not in names)
    with report.check(f"{BURST} at once, each in a transaction of its own, are all there"):
        burst = {new_name() for _ in range(BURST)}
        await run_sync(database.run_each, [database.registration(*tool(name, "x")) for name in burst])
        await ear.hears("tools", lambda names: burst <= names)


def lock_out(database: Database) -> None:
    """Ends the node's connections, and lets it make no new ones."""
    database.ask(f"ALTER ROLE {LOGIN} NOLOGIN")
    database.ask(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{LOGIN}'")
    backends = f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{LOGIN}'"
    until(lambda: database.ask(backends) == "0", "the node's connections are gone")


def let_in(database: Database) -> None:
    database.ask(f"ALTER ROLE {LOGIN} LOGIN")


def restart() -> None:
    folder = os.environ["TIDEGATE_TEST_POSTGRES_FOLDER"]
    subprocess.run([str(ROOT / "scripts/postgres"), "restart", folder], check=True)


async def check_losses(database: Database, ear: Ear, report: Report) -> None:
    with report.check("what comes while the node has no connection is heard of afterwards"):
        name = new_name()
        await run_sync(lock_out, database)
        await register(database, name)
        assert name not in await ear.names(), "it was seen without a connection"
        await run_sync(let_in, database)
        await ear.hears("tools", lambda names: name in names)
        assert texts_of(await ear.client.call_tool(name, {})) == ["here"]
    with report.check("and what goes"):
        await run_sync(lock_out, database)
        await ask(database, f"SELECT api.drop_mcp_handler('{name}')")
        assert name in await ear.names(), "the list was lost with the connection"
        await run_sync(let_in, database)
        await ear.hears("tools", lambda names: name not in names)
    with report.check("a backend that is ended comes back by itself"):
        name = new_name()
        await ask(database, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{LOGIN}'")
        await register(database, name)
        await ear.hears("tools", lambda names: name in names)
    with report.check("what comes while the server restarts is heard of afterwards"):
        name = new_name()
        await run_sync(lock_out, database)
        await run_sync(restart)
        await register(database, name)
        await run_sync(let_in, database)
        await ear.hears("tools", lambda names: name in names)
        assert texts_of(await ear.client.call_tool(name, {})) == ["here"]
    with report.check("and what comes when it has restarted"):
        name = new_name()
        await run_sync(restart)
        await register(database, name)
        await ear.hears("tools", lambda names: name in names)


async def check(node: Node, database: Database, mode: str, report: Report) -> None:
    async with listening(node, mode) as ear:
        await check_changes(database, ear, report)
        await check_losses(database, ear, report)


def check_coming_and_going(report: Report) -> None:
    """Of the database, and of the schema in it."""
    database = Database("coming")
    database.register(*tool("first", "here"))
    lock_out(database)
    with served(database) as node:
        caller = node.caller()
        with report.check("a node begins without its database, and has the handlers when it is there"):
            assert not caller.names()
            let_in(database)
            until(lambda: "first" in caller.names(), "the handlers are there")
        with report.check("a schema that is dropped takes its handlers along"):
            database.ask(f"DROP SCHEMA {SCHEMA} CASCADE")
            until(lambda: not caller.names(), "the handlers are gone")
        with report.check("and one that is installed again brings new ones"):
            database.install()
            database.register(*tool("second", "here"))
            until(lambda: caller.names() == {"second"}, "the handler is there")
    let_in(database)


async def main() -> int:
    report = Report()
    report.subject = "handlers coming and going"
    check_coming_and_going(report)
    database = Database("listening")
    with served(database) as node:
        for mode in REVISIONS:
            report.subject = f"handlers listening {mode}"
            with report.check("it comes to its end"), anyio.fail_after(CHECKS_SECONDS_MAX):
                await check(node, database, mode, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(anyio.run(main))
