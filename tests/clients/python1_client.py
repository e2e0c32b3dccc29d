"""PyPI `mcp` 1.x against the real binary: a client of the last revision with a handshake, over all its transports.

    python1_client.py TRANSPORT…

Transports are `stdio`, `http`, `sse` and `ws`. Runs under `with_server.py`, in a separate environment, because two versions of one
package cannot be installed together.
"""

import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio
from endpoints import address, recorded_command
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ResourceTemplateReference
from python_checks import running_job, texts_of
from questions import ENDLESS, QUESTIONS, compare
from report import Report

REVISION = "2025-11-25"
# The limit for any answer of these tests.
WAIT_SECONDS_MAX = 60


@asynccontextmanager
async def streams(transport: str) -> AsyncIterator[Any]:
    """The two streams of a connection; some transports return further values."""
    if transport == "stdio":
        program, *arguments = recorded_command(transport)
        connection = stdio_client(StdioServerParameters(command=program, args=arguments))
    elif transport == "http":
        connection = streamable_http_client(address(transport))
    elif transport == "sse":
        connection = sse_client(address(transport))
    else:
        with warnings.catch_warnings():
            # The transport is deprecated in 1.x and removed in 2.x.
            warnings.simplefilter("ignore", DeprecationWarning)
            from mcp.client.websocket import websocket_client

            connection = websocket_client(address(transport))
    async with connection as (reads, writes, *_):
        yield reads, writes


async def check_lists(session: ClientSession, report: Report) -> None:
    with report.check("tools are listed with their schemas"):
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        expected = {question["tool"] for question in QUESTIONS} | {"list_jobs", "cancel_job"}
        assert expected <= tools.keys(), f"missing: {expected - tools.keys()}"
        assert all(tool.description and tool.inputSchema["type"] == "object" for tool in tools.values())
    with report.check("a table is a resource that can be read"):
        resources = (await session.list_resources()).resources
        table = next(resource for resource in resources if "orders" in str(resource.uri))
        assert (await session.read_resource(table.uri)).contents, "no contents"
    with report.check("a table's name completes"):
        templates = (await session.list_resource_templates()).resourceTemplates
        template = next(template for template in templates if "{table}" in template.uriTemplate)
        reference = ResourceTemplateReference(type="ref/resource", uri=template.uriTemplate)
        completion = await session.complete(reference, {"name": "table", "value": "ord"}, {"database": "shop"})
        assert "orders" in completion.completion.values, completion


async def check_questions(session: ClientSession, report: Report) -> None:
    for question in QUESTIONS:
        with report.check(question["name"]):
            result = await session.call_tool(question["tool"], question["arguments"])
            compare(question, texts_of(result), result.isError)
    with report.check("an unknown tool is an error"):
        try:
            result = await session.call_tool("drop_everything", {})
        except McpError as error:
            assert error.error.code == -32602, error
        else:
            raise AssertionError(f"it was called: {result}")


async def check_long_call(session: ClientSession, report: Report) -> None:
    """This version sends no cancellation to the server, so only `cancel_job` ends a call."""
    progress: list[float] = []
    arrived = anyio.Event()
    results: list[CallToolResult] = []

    async def note(value: float, _total: float | None, _message: str | None) -> None:
        progress.append(value)
        arrived.set()

    async def call() -> None:
        results.append(await session.call_tool(ENDLESS["tool"], ENDLESS["arguments"], progress_callback=note))

    with report.check("a long call reports progress, and cancel_job ends it, with a message"):
        with anyio.fail_after(WAIT_SECONDS_MAX):
            async with anyio.create_task_group() as group:
                group.start_soon(call)
                job = await running_job(session, lambda: bool(results))
                await arrived.wait()
                await session.call_tool("cancel_job", {"id": job["id"]})
        assert results and results[0].isError, results
        assert "cancel" in " ".join(texts_of(results[0])).lower(), results
        assert progress == sorted(set(progress)), progress
    with report.check("the connection is still usable"):
        compare(QUESTIONS[0], texts_of(await session.call_tool("list_databases", {})), False)


async def main(transports: list[str]) -> int:
    report = Report()
    for transport in transports:
        report.subject = f"python 1 {transport}"
        with report.check("it connects"):
            async with streams(transport) as (reads, writes):
                async with ClientSession(reads, writes, timedelta(seconds=WAIT_SECONDS_MAX)) as session:
                    about = await session.initialize()
                    with report.check(f"it negotiates {REVISION}"):
                        assert about.protocolVersion == REVISION, about.protocolVersion
                    await check_lists(session, report)
                    await check_questions(session, report)
                    await check_long_call(session, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[1:]))
