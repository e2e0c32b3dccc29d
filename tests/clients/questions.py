"""The questions of `questions.json`, which each client asks in its own way, and the comparison of answers with them."""

import json
import re
from pathlib import Path
from typing import Any

QUESTIONS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("questions.json").read_text(encoding="utf-8"))


def compare(question: dict[str, Any], text: str, is_error: bool) -> None:
    """Raises an AssertionError that shows the answer when it is not the one expected."""
    shown = text if len(text) < 1500 else f"{text[:700]} […] {text[-700:]}"
    assert is_error == question.get("isError", False), f"isError is {is_error}: {shown}"
    assert text, "the answer is empty"
    if "equals" in question:
        assert json.loads(text) == question["equals"], shown
    for part in question.get("contains", []):
        assert part in text, f"no {part!r} in: {shown}"
    for part in question.get("lacks", []):
        assert part not in text, f"{part!r} in: {shown}"
    if pattern := question.get("matches"):
        assert re.search(pattern, text), f"no match of {pattern!r} in: {shown}"
