"""PyPI `mcp` 2.x as a client with a person behind it: forms that are accepted, declined and cancelled, and a client without forms.

    python_input.py TRANSPORT…

As a modern client it is asked by rounds of the same call, as a legacy one by requests of the server. Transports are those of
`python_client.py` that can carry both. Runs under `with_server.py`.
"""

import json
import sys
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult
from python_client import REVISIONS, WAIT_SECONDS_MAX, connect, texts_of
from report import Report

REFUND = {"purchase": 3, "amount": 2.5}
MISSING_ABILITY = -32021
# Of all that is asked over one transport in one way; much longer than it takes.
CHECKS_SECONDS_MAX = 180
# What a person who does not agree does.
REFUSALS = {
    "unticks the box": ElicitResult(action="accept", content={"confirm": False}),
    "declines": ElicitResult(action="decline"),
    "closes the form": ElicitResult(action="cancel"),
}


@dataclass
class Person:
    """Answers each question with the next answer, and remembers what was asked."""

    answers: list[ElicitResult]
    asked: list[ElicitRequestParams] = field(default_factory=list)

    async def answer(self, _context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params)
        return self.answers.pop(0)


def client_of(transport: str, mode: str, person: Person | None) -> Client:
    callback = person.answer if person else None
    return Client(connect(transport), mode=mode, elicitation_callback=callback, read_timeout_seconds=WAIT_SECONDS_MAX)


def rows(result: CallToolResult) -> Any:
    assert not result.is_error, texts_of(result)
    return json.loads(texts_of(result)[0])


async def check_consent(transport: str, mode: str, report: Report) -> None:
    with report.check("a call to which its person agrees is answered, and was asked for once"):
        person = Person([ElicitResult(action="accept", content={"confirm": True})])
        async with client_of(transport, mode, person) as client:
            assert rows(await client.call_tool("refund", REFUND)) == [{"id": 3, "refunded": 2.5}]
        (asked,) = person.asked
        assert asked.message == "Refund 2.5 for order 3?", asked.message
        assert asked.requested_schema["required"] == ["confirm"], asked.requested_schema
    for what, answer in REFUSALS.items():
        with report.check(f"nothing is done when the person {what}"):
            person = Person([answer])
            async with client_of(transport, mode, person) as client:
                result = await client.call_tool("refund", REFUND)
                assert result.is_error and "nothing was done" in texts_of(result)[0], result
            assert len(person.asked) == 1, person.asked
    with report.check("two calls at once are asked for apart"):
        yes = ElicitResult(action="accept", content={"confirm": True})
        person = Person([yes, yes])
        answers: list[Any] = []

        async def refund(client: Client, purchase: int) -> None:
            answers.extend(rows(await client.call_tool("refund", {"purchase": purchase, "amount": 1})))

        async with client_of(transport, mode, person) as client, anyio.create_task_group() as group:
            for purchase in (1, 2):
                group.start_soon(refund, client, purchase)
        assert sorted(row["id"] for row in answers) == [1, 2], answers
        assert {asked.message for asked in person.asked} == {"Refund 1 for order 1?", "Refund 1 for order 2?"}


async def check_parameters(transport: str, mode: str, report: Report) -> None:
    with report.check("a parameter that was left out is asked for"):
        person = Person([ElicitResult(action="accept", content={"customer": "Ann"})])
        async with client_of(transport, mode, person) as client:
            assert rows(await client.call_tool("orders_of", {}))[:2] == [{"id": 1}, {"id": 3}]
        (asked,) = person.asked
        assert "Which customer?" in asked.message and "customer" in asked.requested_schema["properties"], asked
    with report.check("one that was given is not"):
        person = Person([])
        async with client_of(transport, mode, person) as client:
            assert rows(await client.call_tool("orders_of", {"customer": "Zoë"})) == [{"id": 4}]
        assert not person.asked, person.asked
    with report.check("a parameter that nobody gives is missing"):
        async with client_of(transport, mode, Person([ElicitResult(action="decline")])) as client:
            result = await client.call_tool("orders_of", {})
            assert result.is_error and "customer" in texts_of(result)[0], result


async def check_without_forms(transport: str, mode: str, report: Report) -> None:
    async with client_of(transport, mode, None) as client:
        with report.check("without forms the call is refused, with what was missing"):
            if mode == "legacy":
                result = await client.call_tool("refund", REFUND)
                assert result.is_error and "elicitation" in texts_of(result)[0], result
            else:
                try:
                    result = await client.call_tool("refund", REFUND)
                except MCPError as error:
                    assert error.code == MISSING_ABILITY, error
                    assert "elicitation" in error.data["requiredCapabilities"], error.data
                else:
                    raise AssertionError(f"it was answered: {result}")
        with report.check("without forms the model is told which argument is missing"):
            result = await client.call_tool("orders_of", {})
            assert result.is_error and "customer" in texts_of(result)[0], result


async def main(transports: list[str]) -> int:
    report = Report()
    for transport in transports:
        for mode in REVISIONS:
            report.subject = f"python input {transport} {mode}"
            with report.check("it comes to its end"), anyio.fail_after(CHECKS_SECONDS_MAX):
                await check_consent(transport, mode, report)
                await check_parameters(transport, mode, report)
                await check_without_forms(transport, mode, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[1:]))
