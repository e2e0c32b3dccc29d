"""PyPI `mcp` 2.x as a client with a user: forms that are accepted, declined and cancelled, and a client without forms.

    python_input.py TRANSPORT…

A modern client receives input requests in the result of a call, a legacy one as requests of the server. Transports are those of
`python_client.py` that support both. Runs under `with_server.py`.
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
from python_checks import texts_of
from python_client import REVISIONS, WAIT_SECONDS_MAX, connect
from report import Report

REFUND = {"purchase": 3, "amount": 2.5}
MISSING_CAPABILITY = -32021
# The limit for all checks of one transport in one mode.
CHECKS_SECONDS_MAX = 180
# The ways in which a user refuses.
REFUSALS = {
    "unticks the box": ElicitResult(action="accept", content={"confirm": False}),
    "declines": ElicitResult(action="decline"),
    "closes the form": ElicitResult(action="cancel"),
}


@dataclass
class User:
    """Answers each form with the next answer, and records the forms."""

    answers: list[ElicitResult]
    forms: list[ElicitRequestParams] = field(default_factory=list)

    async def answer(self, _context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.forms.append(params)
        return self.answers.pop(0)


def client_of(transport: str, mode: str, user: User | None) -> Client:
    callback = user.answer if user else None
    return Client(connect(transport), mode=mode, elicitation_callback=callback, read_timeout_seconds=WAIT_SECONDS_MAX)


def rows(result: CallToolResult) -> Any:
    assert not result.is_error, texts_of(result)
    return json.loads(texts_of(result)[0])


async def check_consent(transport: str, mode: str, report: Report) -> None:
    with report.check("a call that its user confirms is answered, after one form"):
        user = User([ElicitResult(action="accept", content={"confirm": True})])
        async with client_of(transport, mode, user) as client:
            assert rows(await client.call_tool("refund", REFUND)) == [{"id": 3, "refunded": 2.5}]
        (form,) = user.forms
        assert form.message == "Refund 2.5 for order 3?", form.message
        assert form.requested_schema["required"] == ["confirm"], form.requested_schema
    for what, answer in REFUSALS.items():
        with report.check(f"nothing is done when the user {what}"):
            user = User([answer])
            async with client_of(transport, mode, user) as client:
                result = await client.call_tool("refund", REFUND)
                assert result.is_error and "nothing was done" in texts_of(result)[0], result
            assert len(user.forms) == 1, user.forms
    with report.check("two concurrent calls have separate forms"):
        yes = ElicitResult(action="accept", content={"confirm": True})
        user = User([yes, yes])
        answers: list[Any] = []

        async def refund(client: Client, purchase: int) -> None:
            answers.extend(rows(await client.call_tool("refund", {"purchase": purchase, "amount": 1})))

        async with client_of(transport, mode, user) as client, anyio.create_task_group() as group:
            for purchase in (1, 2):
                group.start_soon(refund, client, purchase)
        assert sorted(row["id"] for row in answers) == [1, 2], answers
        assert {form.message for form in user.forms} == {"Refund 1 for order 1?", "Refund 1 for order 2?"}


async def check_parameters(transport: str, mode: str, report: Report) -> None:
    with report.check("a missing parameter is requested by a form"):
        user = User([ElicitResult(action="accept", content={"customer": "Ann"})])
        async with client_of(transport, mode, user) as client:
            assert rows(await client.call_tool("orders_of", {}))[:2] == [{"id": 1}, {"id": 3}]
        (form,) = user.forms
        assert "Which customer?" in form.message and "customer" in form.requested_schema["properties"], form
    with report.check("a given parameter is not requested"):
        user = User([])
        async with client_of(transport, mode, user) as client:
            assert rows(await client.call_tool("orders_of", {"customer": "Zoë"})) == [{"id": 4}]
        assert not user.forms, user.forms
    with report.check("a declined parameter is an error"):
        async with client_of(transport, mode, User([ElicitResult(action="decline")])) as client:
            result = await client.call_tool("orders_of", {})
            assert result.is_error and "customer" in texts_of(result)[0], result


async def check_without_forms(transport: str, mode: str, report: Report) -> None:
    async with client_of(transport, mode, None) as client:
        with report.check("without forms the call is rejected, with the missing capability"):
            if mode == "legacy":
                result = await client.call_tool("refund", REFUND)
                assert result.is_error and "elicitation" in texts_of(result)[0], result
            else:
                try:
                    result = await client.call_tool("refund", REFUND)
                except MCPError as error:
                    assert error.code == MISSING_CAPABILITY, error
                    assert "elicitation" in error.data["requiredCapabilities"], error.data
                else:
                    raise AssertionError(f"it was answered: {result}")
        with report.check("without forms the error names the missing argument"):
            result = await client.call_tool("orders_of", {})
            assert result.is_error and "customer" in texts_of(result)[0], result


async def main(transports: list[str]) -> int:
    report = Report()
    for transport in transports:
        for mode in REVISIONS:
            report.subject = f"python input {transport} {mode}"
            with report.check("it completes"), anyio.fail_after(CHECKS_SECONDS_MAX):
                await check_consent(transport, mode, report)
                await check_parameters(transport, mode, report)
                await check_without_forms(transport, mode, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[1:]))
