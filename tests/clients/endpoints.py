"""How clients reach the server: the command of each transport over standard input and output, and the address of each HTTP transport.

Commands run beside `stdio_tee.py`, which records the messages; addresses are those of the recording proxy.
"""

import os
import sys
from pathlib import Path

TEE = Path(__file__).parent.parent / "wire" / "stdio_tee.py"
# A separate server, or the bridge to the listening server.
COMMANDS = ("stdio", "bridge-http", "bridge-ws")


def address(transport: str) -> str:
    """The address of `http`, `sse` or `ws`."""
    url = os.environ["TIDEGATE_URL"]
    addresses = {"http": url, "sse": f"{url}/sse", "ws": f"ws{url.removeprefix('http')}/ws"}
    return addresses[transport]


def command(transport: str) -> list[str]:
    """The command that serves MCP over its standard input and output."""
    environment = os.environ
    server = [environment["TIDEGATE_BINARY"], "stdio"]
    if transport == "stdio":
        # Not `--config`, which the inspector takes as its own option at any position.
        return ["env", f"TIDEGATE_CONFIG={environment['TIDEGATE_CONFIGURATION']}", *server]
    return [*server, "--connect", address(transport.removeprefix("bridge-"))]


def recorded_command(transport: str) -> list[str]:
    """The same command, with a recording."""
    return [sys.executable, str(TEE), os.environ["TIDEGATE_RECORDINGS"], *command(transport)]
