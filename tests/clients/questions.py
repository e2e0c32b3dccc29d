"""The questions of `questions.json`, which each client asks in its own way, and the comparison of answers with them."""

import json
import re
from pathlib import Path
from typing import Any

CONTENTS = json.loads(Path(__file__).with_name("questions.json").read_text(encoding="utf-8"))
QUESTIONS: list[dict[str, Any]] = CONTENTS["questions"]
# A call that reads ten thousand million rows and answers with a hundred values: it is there to be cancelled.
ENDLESS: dict[str, Any] = CONTENTS["endless"]


def compare(question: dict[str, Any], texts: list[str], is_error: bool) -> None:
    """Compares the text blocks of an answer; an AssertionError shows them when they are not the ones expected."""
    text = "\n".join(texts)
    shown = text if len(text) < 1500 else f"{text[:700]} […] {text[-700:]}"
    assert is_error == question.get("isError", False), f"isError is {is_error}: {shown}"
    assert text, "the answer is empty"
    if "equals" in question:
        # Rows stand in the first block; a line on what was left out comes in one of its own.
        assert json.loads(texts[0]) == question["equals"], shown
    for part in question.get("contains", []):
        assert part in text, f"no {part!r} in: {shown}"
    for part in question.get("lacks", []):
        assert part not in text, f"{part!r} in: {shown}"
    if pattern := question.get("matches"):
        assert re.search(pattern, text), f"no match of {pattern!r} in: {shown}"
