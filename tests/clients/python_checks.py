"""Checks that the clients of both versions of PyPI `mcp` share."""

import json
from collections.abc import Callable
from typing import Any

from questions import ENDLESS


def texts_of(result: Any) -> list[str]:
    return [block.text for block in result.content if block.type == "text"]


async def jobs(client: Any) -> list[dict[str, Any]]:
    return json.loads(texts_of(await client.call_tool("list_jobs", {}))[0])


async def running_job(client: Any, is_over: Callable[[], bool]) -> dict[str, Any]:
    """Polls until the endless call is among the jobs."""
    while not is_over():
        for job in await jobs(client):
            if job["target"] == ENDLESS["tool"] and job["status"] == "running":
                return job
    raise AssertionError("the call ended before it was among the jobs")
