"""Asks one PyPI `mcp`, the one that is installed, for answers of given sizes; `largest_answer.py` tells it which.

    largest_probe.py TRANSPORT TARGET…

TRANSPORT is `stdio`, `http`, `events`, `sse` or `ws`; TARGET is the command or the address. `events` is Streamable HTTP with
progress asked for, upon which the answer comes in an event stream. A line of standard input is a question and the size that its
answer has, as JSON; it is answered with a line: `whole`, `answer of …` for another one, or what went wrong. Each has a connection of its own, since what is too large often ends one.
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


def opened(transport: str, target: list[str]) -> Any:
    match transport:
        case "stdio":
            return stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
        case "sse":
            return sse_client(target[0])
        case "ws":
            # Version 2 has none.
            from mcp.client.websocket import websocket_client

            return websocket_client(target[0])
        case _:
            return streamable_http_client(target[0])


@asynccontextmanager
async def connected(transport: str, target: list[str]) -> AsyncIterator[ClientSession]:
    async with opened(transport, target) as (reads, writes, *_), ClientSession(reads, writes) as session:
        await session.initialize()
        yield session


async def ignore(_progress: float, _total: float | None, _message: str | None) -> None:
    """Nobody looks at it."""


async def ask(transport: str, target: list[str], question: dict[str, Any], size: int) -> str:
    async with connected(transport, target) as session:
        progress = ignore if transport == "events" else None
        result = await session.call_tool(question["name"], question["arguments"], progress_callback=progress)
        text = result.content[0].text
        return "whole" if len(text) == size else f"answer of {len(text)}: {text[:200]}"


async def main(transport: str, target: list[str]) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            outcome = await ask(transport, target, asked["question"], asked["size"])
        except Exception as error:
            outcome = describe(error)
        print(" ".join(outcome.split())[:400], flush=True)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2:])
