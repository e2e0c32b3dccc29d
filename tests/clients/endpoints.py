"""Where the server is reached: the command of each way over standard input and output, and the address of each door.

Commands run beside `stdio_tee.py`, which records what is said; addresses lead through the recording proxy.
"""

import os
import sys
from pathlib import Path

TEE = Path(__file__).parent.parent / "wire" / "stdio_tee.py"
# A server of its own, or the bridge to the one that listens.
COMMANDS = ("stdio", "bridge-http", "bridge-ws")


def address(transport: str) -> str:
    """The address of `http`, `sse` or `ws`."""
    url = os.environ["TIDEGATE_URL"]
    doors = {"http": url, "sse": f"{url}/sse", "ws": f"ws{url.removeprefix('http')}/ws"}
    return doors[transport]


def command(transport: str) -> list[str]:
    """The command that speaks MCP over its standard input and output."""
    environment = os.environ
    binary = [environment["TIDEGATE_BINARY"], "stdio"]
    if transport == "stdio":
        return [*binary, "--config", environment["TIDEGATE_CONFIGURATION"]]
    return [*binary, "--connect", address(transport.removeprefix("bridge-"))]


def recorded_command(transport: str) -> list[str]:
    """The same, recorded."""
    return [sys.executable, str(TEE), os.environ["TIDEGATE_RECORDINGS"], *command(transport)]
