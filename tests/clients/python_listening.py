"""PyPI `mcp` 2.x as a client that listens: `subscriptions/listen` as a modern one, `resources/subscribe` as a legacy one.

    python_listening.py TRANSPORT…

The tests change the files on disk. Runs under `with_server.py`.
"""

import sys
import warnings
from contextlib import asynccontextmanager
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from changes import add_row, add_tool
from mcp import Client
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceListChangedNotification, ResourceUpdatedNotification, ToolListChangedNotification
from python_client import REVISIONS, WAIT_SECONDS_MAX, connect
from report import Report

# The limit for all checks of one transport in one mode.
CHECKS_SECONDS_MAX = 180
UNKNOWN = "tidegate://nowhere/nothing"
EVENTS_MAX = 1_000
numbers = count()

# A legacy method of the client is deprecated; the tests use it deliberately.
warnings.simplefilter("ignore", DeprecationWarning)


async def table_of(client: Client) -> str:
    resources = (await client.list_resources()).resources
    return next(str(resource.uri) for resource in resources if "orders" in str(resource.uri))


async def names_of(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}


def new_tool() -> str:
    name = f"came_{next(numbers)}"
    add_tool(name)
    return name


async def check_modern(transport: str, report: Report) -> None:
    async with Client(connect(transport), read_timeout_seconds=WAIT_SECONDS_MAX) as client:
        table = await table_of(client)
        with report.check("the honoured filter omits resources that do not exist"):
            async with client.listen(tools_list_changed=True, resource_subscriptions=[table, UNKNOWN]) as subscription:
                assert subscription.honored.tools_list_changed, subscription.honored
                assert subscription.honored.resource_subscriptions == [table], subscription.honored
                assert not subscription.honored.prompts_list_changed, subscription.honored
        with report.check("a change of the configuration is notified, to subscribed listeners only"):
            async with client.listen(tools_list_changed=True) as subscription:
                name = new_tool()
                assert await anext(subscription) == ToolsListChanged()
                assert name in await names_of(client)
            async with client.listen(resources_list_changed=True) as subscription:
                new_tool()
                assert await anext(subscription) == ResourcesListChanged()
        with report.check("a changed file of a table is notified"):
            async with client.listen(resource_subscriptions=[table]) as subscription:
                add_row()
                assert await anext(subscription) == ResourceUpdated(uri=table)
        with report.check("two streams of one client both receive it"):
            async with client.listen(resource_subscriptions=[table]) as one, client.listen(tools_list_changed=True) as other:
                assert one.subscription_id != other.subscription_id
                add_row()
                assert await anext(one) == ResourceUpdated(uri=table)
                new_tool()
                assert await anext(other) == ToolsListChanged()
        with report.check("the connection is still usable after the last subscription"):
            assert "list_databases" in await names_of(client)


@asynccontextmanager
async def legacy_client(transport: str) -> AsyncIterator[tuple[Client, MemoryObjectReceiveStream[Any]]]:
    """A client of an older revision, and its received notifications."""
    sender, receiver = anyio.create_memory_object_stream[Any](EVENTS_MAX)

    async def enqueue(message: Any) -> None:
        sender.send_nowait(message)

    with sender, receiver:
        async with Client(
            connect(transport), mode="legacy", message_handler=enqueue, read_timeout_seconds=WAIT_SECONDS_MAX
        ) as client:
            yield client, receiver


async def next_of(events: MemoryObjectReceiveStream[Any], kind: type) -> Any:
    async for event in events:
        if isinstance(event, kind):
            return event
    raise AssertionError(f"the connection ended without a {kind.__name__}")


async def wait_for_tools_changed(events: MemoryObjectReceiveStream[Any]) -> None:
    """Waits for the change of the list of tools. No resource may change before."""
    async for event in events:
        assert not isinstance(event, ResourceUpdatedNotification), event
        if isinstance(event, ToolListChangedNotification):
            return


async def check_legacy(transport: str, report: Report) -> None:
    async with legacy_client(transport) as (client, events):
        table = await table_of(client)
        with report.check("a change of the configuration is notified"):
            name = new_tool()
            await next_of(events, ToolListChangedNotification)
            assert name in await names_of(client)
            await next_of(events, ResourceListChangedNotification)
        with report.check("a change of a subscribed table is notified"):
            await client.subscribe_resource(table)
            add_row()
            event = await next_of(events, ResourceUpdatedNotification)
            assert str(event.params.uri) == table, event
        with report.check("a change after the end of the subscription is not notified"):
            await client.unsubscribe_resource(table)
            while events.statistics().current_buffer_used:
                events.receive_nowait()
            add_row()
            # A new configuration counts as a change of each resource. The notifications of the first change are
            # complete when those of the second one arrive.
            for _ in range(2):
                new_tool()
                await wait_for_tools_changed(events)
        with report.check("a resource that does not exist cannot be subscribed to"):
            try:
                await client.subscribe_resource(UNKNOWN)
            except MCPError as error:
                assert error.code in (-32602, -32002), error
            else:
                raise AssertionError("it was subscribed to")


async def main(transports: list[str]) -> int:
    report = Report()
    for transport in transports:
        for mode in REVISIONS:
            report.subject = f"python listening {transport} {mode}"
            with report.check("it completes"), anyio.fail_after(CHECKS_SECONDS_MAX):
                await (check_legacy if mode == "legacy" else check_modern)(transport, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[1:]))
