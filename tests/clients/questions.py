"""The questions of `questions.json`, which all clients send, and the comparison of the answers."""

import json
import re
from pathlib import Path
from typing import Any

CONTENTS = json.loads(Path(__file__).with_name("questions.json").read_text(encoding="utf-8"))
QUESTIONS: list[dict[str, Any]] = CONTENTS["questions"]
# A call that reads ten thousand million rows, for tests of cancellation.
ENDLESS: dict[str, Any] = CONTENTS["endless"]


def compare(question: dict[str, Any], texts: list[str], is_error: bool) -> None:
    """Compares the text blocks of an answer; raises an AssertionError with the answer if it is unexpected."""
    text = "\n".join(texts)
    excerpt = text if len(text) < 1500 else f"{text[:700]} […] {text[-700:]}"
    assert is_error == question.get("isError", False), f"isError is {is_error}: {excerpt}"
    assert text, "the answer is empty"
    if "equals" in question:
        # The first block has the rows; a line about omitted rows is a separate block.
        assert json.loads(texts[0]) == question["equals"], excerpt
    for part in question.get("contains", []):
        assert part in text, f"no {part!r} in: {excerpt}"
    for part in question.get("lacks", []):
        assert part not in text, f"{part!r} in: {excerpt}"
    if pattern := question.get("matches"):
        assert re.search(pattern, text), f"no match of {pattern!r} in: {excerpt}"
