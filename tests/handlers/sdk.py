"""PyPI `mcp` 2.x against a node with handlers, with version negotiation and as a legacy client."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from bridged import Node
from endpoints import TEE
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from python_checks import texts_of
from python_client import REVISIONS, WAIT_SECONDS_MAX
from report import Report

# Standard input and output have no credential: the caller is the user of the process.
STDIO = "the process's user"
AUTHENTICATION_REQUIRED = -32001
INVALID_PARAMS = -32602


@asynccontextmanager
async def connect(node: Node, who: str | None, mode: str, **more: Any) -> AsyncIterator[Client]:
    """A client of the package, over HTTP with the credential in its header."""
    if who == STDIO:
        tee = [str(TEE), os.environ["TIDEGATE_RECORDINGS"], os.environ["TIDEGATE_BINARY"], "stdio"]
        environment = {**os.environ, "TIDEGATE_CONFIG": str(node.configuration)}
        server = StdioServerParameters(command=sys.executable, args=tee, env=environment)
        async with Client(server, mode=mode, read_timeout_seconds=WAIT_SECONDS_MAX, **more) as client:
            yield client
        return
    credential = node.credential(who)
    headers = {} if credential is None else {"Authorization": f"Bearer {credential}"}
    # A subscription has no data while nothing changes.
    timeout = httpx2.Timeout(WAIT_SECONDS_MAX, read=None)
    async with httpx2.AsyncClient(headers=headers, timeout=timeout) as http:
        transport = streamable_http_client(node.url, http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=WAIT_SECONDS_MAX, **more) as client:
            yield client


async def protocol_error_of(code: int, pending: Any) -> str:
    """The message of a protocol error with that code."""
    try:
        result = await pending
    except MCPError as error:
        assert error.code == code, error
        return str(error)
    raise AssertionError(f"it was answered: {result}")


async def check_lists(client: Client, report: Report) -> None:
    with report.check("tools, resources, templates and prompts are listed"):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["echo"].title == "Echo" and tools["echo"].input_schema["required"] == ["message"], tools["echo"]
        assert tools["echo"].meta and tools["echo"].meta["tags"] == ["a", "b"], tools["echo"]
        resources = {resource.name: str(resource.uri) for resource in (await client.list_resources()).resources}
        assert resources["plain"] == "app:///plain", resources
        templates = (await client.list_resource_templates()).resource_templates
        assert {"app:///{a}", "app:///{aa}"} <= {template.uri_template for template in templates}, templates
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        arguments = prompts["help"].arguments or []
        assert [(argument.name, bool(argument.required)) for argument in arguments] == [("task", True), ("tone", False)]


async def check_calls(client: Client, report: Report) -> None:
    with report.check("a tool is called"):
        result = await client.call_tool("echo", {"message": "hello"})
        assert texts_of(result) == ["Echo: hello"] and not result.is_error, result
    with report.check("a structured answer fits its schema"):
        result = await client.call_tool("typed", {"a": None})
        assert result.structured_content == {"a": None}, result
    with report.check("a failing tool has an error result"):
        result = await client.call_tool("raises", {})
        assert result.is_error and texts_of(result) and "CANARY" not in str(result), result
    with report.check("wrong arguments are reported in the result"):
        result = await client.call_tool("echo", {"message": 5})
        assert result.is_error and "message" in " ".join(texts_of(result)), result
    with report.check("resources are read"):
        contents = (await client.read_resource("app:///q%2Fr/x/s")).contents
        assert contents[0].text == 'deep {"a": "q/r", "b": "s"}', contents
    with report.check("a prompt is read"):
        messages = (await client.get_prompt("help", {"task": "t"})).messages
        assert messages[0].content.text == "t", messages
    with report.check("unknown names, and prompts without what they require, are errors"):
        await protocol_error_of(INVALID_PARAMS, client.call_tool("ecko", {}))
        await protocol_error_of(INVALID_PARAMS, client.get_prompt("helping", {}))
        await protocol_error_of(INVALID_PARAMS, client.get_prompt("help", {}))


async def check(node: Node, report: Report) -> None:
    for mode, revision in REVISIONS.items():
        report.subject = f"handlers, PyPI mcp {mode}"
        with report.check("it connects"):
            async with connect(node, None, mode) as client:
                with report.check(f"it negotiates {revision}"):
                    assert client.protocol_version == revision, client.protocol_version
                await check_lists(client, report)
                await check_calls(client, report)
                with report.check("an anonymous caller must authenticate"):
                    await protocol_error_of(AUTHENTICATION_REQUIRED, client.call_tool("closed", {}))
        with report.check("an authenticated caller is identified"):
            async with connect(node, "ann@north", mode) as client:
                assert texts_of(await client.call_tool("closed", {})) == ["ann@north"]
        with report.check("the user of the process is identified, over standard input and output"):
            async with connect(node, STDIO, mode) as client:
                assert "closed" in {tool.name for tool in (await client.list_tools()).tools}
                (result,) = texts_of(await client.call_tool("closed", {}))
                assert result.partition("@")[0] and not result.partition("@")[2], result
