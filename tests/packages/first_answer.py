"""A stock client, PyPI `mcp`, starts a command as its server and calls one tool. The command may install the server first."""

import os
import tempfile
import time
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

# The installation and the answer together.
ANSWER_SECONDS_MAX = 120
ORDERS = "id,customer,amount\n1,Ann,12.5\n2,Bob,7.25\n3,Ann,30\n"
QUESTION = "SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer ORDER BY customer"
EXPECTED_TEXTS = ("Ann", "42.5", "Bob", "7.25")


def write_data(folder: Path) -> Path:
    data = folder / "data"
    data.mkdir(parents=True)
    (data / "orders.csv").write_text(ORDERS)
    return data


def clean_environment(home: Path, **further: str) -> dict[str, str]:
    """The environment of a user with an empty home folder, without settings of the package managers of this machine."""
    return {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TMPDIR": tempfile.gettempdir(), **further}


def ask(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Returns the seconds from the start of the command to the answer. Fails if the answer is wrong."""

    async def call() -> str:
        server = StdioServerParameters(command=command[0], args=command[1:], cwd=str(folder), env=environment)
        with anyio.fail_after(ANSWER_SECONDS_MAX):
            async with Client(server) as client:
                result = await client.call_tool("sql", {"sql": QUESTION})
                return "\n".join(block.text for block in result.content if block.type == "text")

    started = time.monotonic()
    answer = anyio.run(call)
    seconds = time.monotonic() - started
    for text in EXPECTED_TEXTS:
        assert text in answer, f"{text!r} is not in the answer: {answer}"
    return seconds
