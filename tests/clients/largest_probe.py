"""Requests answers of given sizes with the installed version of PyPI `mcp`, for `largest_answer.py`.

    largest_probe.py TRANSPORT TARGET…

TRANSPORT is `stdio`, `http`, `events`, `sse` or `ws`; TARGET is the command or the address. `events` is Streamable HTTP with
requested progress, so that the answer is an event stream. Each line of standard input is a question and the size of its answer, as
JSON. The output is one line for each: `whole`, `answer of …` for another size, or the error. Each question has a new connection,
because a too large answer often closes it.
"""

import json
import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from report import describe

warnings.simplefilter("ignore", DeprecationWarning)


def open_streams(transport: str, target: list[str]) -> Any:
    match transport:
        case "stdio":
            return stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
        case "sse":
            return sse_client(target[0])
        case "ws":
            # Version 2 has no WebSocket client.
            from mcp.client.websocket import websocket_client

            return websocket_client(target[0])
        case _:
            return streamable_http_client(target[0])


@asynccontextmanager
async def connect(transport: str, target: list[str]) -> AsyncIterator[ClientSession]:
    async with open_streams(transport, target) as (reads, writes, *_), ClientSession(reads, writes) as session:
        await session.initialize()
        yield session


async def ignore(_progress: float, _total: float | None, _message: str | None) -> None:
    """Drops the progress."""


async def request(transport: str, target: list[str], question: dict[str, Any], size: int) -> str:
    async with connect(transport, target) as session:
        progress = ignore if transport == "events" else None
        result = await session.call_tool(question["name"], question["arguments"], progress_callback=progress)
        text = result.content[0].text
        return "whole" if len(text) == size else f"answer of {len(text)}: {text[:200]}"


async def main(transport: str, target: list[str]) -> None:
    for line in sys.stdin:
        line_content = json.loads(line)
        try:
            outcome = await request(transport, target, line_content["question"], line_content["size"])
        except Exception as error:
            outcome = describe(error)
        print(" ".join(outcome.split())[:400], flush=True)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2:])
