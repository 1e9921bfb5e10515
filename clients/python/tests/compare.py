"""A part of a message against the whole, as tests/vectors/README.md has it."""

from collections.abc import Iterator
from typing import Any


def differences(expect: dict[str, Any], got: dict[str, Any]) -> list[str]:
    """Everything that `expect` names and `got` does not hold."""
    return [it for key, wanted in expect.items() for it in differ(key, wanted, got.get(key))]


def differ(path: str, wanted: object, got: object) -> Iterator[str]:
    match wanted, got:
        case dict(), dict():
            for key, part in wanted.items():
                yield from differ(f"{path}.{key}", part, got.get(key))
        case list(), list() if len(wanted) == len(got):
            for place, (part, other) in enumerate(zip(wanted, got, strict=True)):
                yield from differ(f"{path}[{place}]", part, other)
        # Proto-JSON leaves out what has its default value.
        case ((None | False | 0 | ""), None):
            pass
        case _ if type(wanted) is not type(got) or wanted != got:
            yield f"{path}: {got!r}, expected {wanted!r}"
