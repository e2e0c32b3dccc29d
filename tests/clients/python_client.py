"""PyPI `mcp` 2.x against the real binary: all its transports, with version negotiation and as a legacy client.

    python_client.py TRANSPORT…

Transports are `stdio`, `http`, `sse`, and `bridge-http` and `bridge-ws`, the command that carries stdio to a running server. Runs
under `with_server.py`; TIDEGATE_BINARY names the binary.
"""

import sys
from itertools import pairwise
from typing import Any

import anyio
from endpoints import COMMANDS, address, recorded_command
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ResourceTemplateReference
from python_checks import jobs, running_job, texts_of
from questions import ENDLESS, QUESTIONS, compare
from report import Report

# The expected revision of each negotiation mode.
REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
# The limit for any answer of these tests.
WAIT_SECONDS_MAX = 60


def connect(transport: str) -> Any:
    """The first argument of `Client`."""
    if transport in COMMANDS:
        program, *arguments = recorded_command(transport)
        return StdioServerParameters(command=program, args=arguments)
    return sse_client(address("sse")) if transport == "sse" else address(transport)


async def check_lists(client: Client, report: Report) -> None:
    with report.check("tools are listed with their schemas"):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        expected = {question["tool"] for question in QUESTIONS} | {"list_jobs", "cancel_job"}
        assert expected <= tools.keys(), f"missing: {expected - tools.keys()}"
        assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools.values())
    with report.check("a table is a resource that can be read"):
        resources = (await client.list_resources()).resources
        table = next(resource for resource in resources if "orders" in str(resource.uri))
        contents = (await client.read_resource(str(table.uri))).contents
        assert contents, "no contents"
    with report.check("an unknown resource is an error"):
        try:
            await client.read_resource("tidegate://nowhere/nothing")
        except MCPError as error:
            assert error.code in (-32602, -32002), error
        else:
            raise AssertionError("it was read")
    with report.check("a table's name completes"):
        templates = (await client.list_resource_templates()).resource_templates
        template = next(template for template in templates if "{table}" in template.uri_template)
        completion = await client.complete(
            ResourceTemplateReference(uri=template.uri_template),
            {"name": "table", "value": "ord"},
            {"database": "shop"},
        )
        assert "orders" in completion.completion.values, completion


async def check_questions(client: Client, report: Report) -> None:
    for question in QUESTIONS:
        with report.check(question["name"]):
            result = await client.call_tool(question["tool"], question["arguments"])
            compare(question, texts_of(result), bool(result.is_error))
    with report.check("an unknown tool is an error"):
        try:
            result = await client.call_tool("drop_everything", {})
        except MCPError as error:
            assert error.code == -32602, error
        else:
            raise AssertionError(f"it was called: {result}")


async def wait_until_ended(client: Client, job: dict[str, Any]) -> None:
    """Polls until the job has ended; the caller limits the time."""
    while any(other["id"] == job["id"] and other["status"] == "running" for other in await jobs(client)):
        await anyio.lowlevel.checkpoint()


async def check_long_calls(client: Client, report: Report) -> None:
    progress: list[float] = []
    arrived = anyio.Event()
    results: list[CallToolResult] = []

    async def note(value: float, _total: float | None, _message: str | None) -> None:
        progress.append(value)
        arrived.set()

    async def call(scope: anyio.CancelScope) -> None:
        with scope:
            results.append(
                await client.call_tool(ENDLESS["tool"], ENDLESS["arguments"], progress_callback=note)
            )

    with report.check("a long call reports progress, and ends when the client cancels it"):
        scope = anyio.CancelScope()
        with anyio.fail_after(WAIT_SECONDS_MAX):
            async with anyio.create_task_group() as group:
                group.start_soon(call, scope)
                job = await running_job(client, lambda: bool(results))
                await arrived.wait()
                scope.cancel()
            await wait_until_ended(client, job)
        assert not results, f"it was answered: {results}"
        assert all(a < b for a, b in pairwise(progress)), progress
    with report.check("cancel_job ends a call, with a message"):
        with anyio.fail_after(WAIT_SECONDS_MAX):
            async with anyio.create_task_group() as group:
                group.start_soon(call, anyio.CancelScope())
                job = await running_job(client, lambda: bool(results))
                await client.call_tool("cancel_job", {"id": job["id"]})
        assert results and results[0].is_error, results
        assert "cancel" in " ".join(texts_of(results[0])).lower(), results
    with report.check("the connection is still usable"):
        compare(QUESTIONS[0], texts_of(await client.call_tool("list_databases", {})), False)


async def main(transports: list[str]) -> int:
    report = Report()
    for transport in transports:
        for mode, revision in REVISIONS.items():
            report.subject = f"python {transport} {mode}"
            with report.check("it connects"):
                async with Client(connect(transport), mode=mode, read_timeout_seconds=WAIT_SECONDS_MAX) as client:
                    with report.check(f"it negotiates {revision}"):
                        assert client.protocol_version == revision, client.protocol_version
                        assert client.server_info and client.instructions
                    await check_lists(client, report)
                    await check_questions(client, report)
                    await check_long_calls(client, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[1:]))
