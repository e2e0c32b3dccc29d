"""Names of functions of our crates, as a debugger prints them. For scripts/call-path."""

from __future__ import annotations

import re
from dataclasses import dataclass

CRATE = re.compile(r"tidegate(?:_\w+)?::")
# Derives write most of their impls.
DERIVED_TRAITS = {"Clone", "Debug", "PartialEq", "Eq", "PartialOrd", "Ord", "Hash", "Default"}
# What macros write: in constants without a name, or with names that no person chooses.
GENERATED = re.compile(r"(?:^|::)(?:_|__\w+)(?:::|$)")
CLOSURE = re.compile(r"::\{+(?:closure|async)")
OPENING, CLOSING = "<", ">"


@dataclass(frozen=True)
class Function:
    """A function, and the type of its `impl`, by paths without generic arguments."""

    name: str
    type_name: str | None

    @property
    def crate(self) -> str:
        return self.name.split("::", 1)[0]


def parse_symbol(symbol: str) -> Function | None:
    """The function of one of our crates that people wrote; a closure is a part of its function."""
    if closure := CLOSURE.search(symbol):
        symbol = symbol[: closure.start()]
    if GENERATED.search(symbol):
        return None
    if symbol.startswith(OPENING):
        implemented, rest = split_brackets(symbol)
        return function_of_impl("", implemented, rest)
    module, impl, rest = symbol.partition("::<impl ")
    if impl and CRATE.match(module):
        implemented, rest = split_brackets(f"<{rest}")
        trait, is_for, type_text = top_level_partition(implemented, " for ")
        return function_of_impl(module, f"{type_text} as {trait}" if is_for else implemented, rest)
    path = without_arguments(symbol)
    if not CRATE.match(path):
        return None
    segments = path.split("::")
    types = [index for index, segment in enumerate(segments) if segment[:1].isupper()]
    # The last one is the constructor of a struct or of a variant.
    if types and types[-1] == len(segments) - 1:
        return None
    return function("::".join(segments), "::".join(segments[: types[-1] + 1]) if types else None)


def function_of_impl(module: str, implemented: str, rest: str) -> Function | None:
    """The function `rest` of `<Type as Trait>`, or of `<Type>`; `module` has the impl, if it is known."""
    type_text, _, trait_text = top_level_partition(implemented, " as ")
    type_name, trait = plain_path(type_text), plain_path(trait_text)
    if trait.rpartition("::")[2] in DERIVED_TRAITS:
        return None
    is_ours = CRATE.match(type_name) is not None
    # An impl of our trait for a type of others is in the crate of the trait.
    place = type_name if is_ours else f"{module or trait}::{type_name}"
    if not CRATE.match(place):
        return None
    shown = f" as {trait.rpartition('::')[2]}" if trait else ""
    return function(f"{place}{shown}{without_arguments(rest)}", type_name if is_ours else None)


def function(name: str, type_name: str | None) -> Function | None:
    # Shims of the compiler have a brace in their name.
    if "{" in name:
        return None
    return Function(short(name), short(type_name) if type_name else None)


def short(name: str) -> str:
    """The path with the name of the crate's folder."""
    crate, colons, rest = name.partition("::")
    return crate.removeprefix("tidegate_").replace("_", "-") + colons + rest


def plain_path(text: str) -> str:
    """The path of a type without references and arguments."""
    return without_arguments(re.sub(r"^(?:[&*]|mut |const |dyn |'\w+ )+", "", text.strip()))


def without_arguments(text: str) -> str:
    """The text without what is between angle brackets."""
    text = text.replace("->", "")
    while (shorter := re.sub(r"(?:::)?<[^<>]*>", "", text)) != text:
        text = shorter
    return text


def split_brackets(text: str) -> tuple[str, str]:
    """What is between the first bracket and the one that closes it, and what is behind."""
    depth = 0
    for position, character in enumerate(text):
        if character == OPENING:
            depth += 1
        elif character == CLOSING and text[position - 1] != "-":
            depth -= 1
            if not depth:
                return text[1:position], text[position + 1 :]
    return text[1:], ""


def top_level_partition(text: str, separator: str) -> tuple[str, str, str]:
    """As `str.partition`, at the first separator that is not within brackets."""
    depth = 0
    for position, character in enumerate(text):
        if not depth and text.startswith(separator, position):
            return text[:position], separator, text[position + len(separator) :]
        depth += (character == OPENING) - (character == CLOSING and text[position - 1 : position] != "-")
    return text, "", ""
