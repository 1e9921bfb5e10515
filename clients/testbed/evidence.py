"""Writes docs/evidence.md from what the languages say in their evidence.json; with --check, only compares.

`python -m testbed.evidence [--check]`
"""

import json
import sys
from pathlib import Path

CLIENTS = Path(__file__).parents[1]
PAGE = CLIENTS.parent / "docs" / "evidence.md"
LANGUAGES = ("go", "java", "python", "node", "rust")
# What a library's name says about what it speaks.
OVER = {
    "grpc-go": "grpc",
    "grpc-java": "grpc",
    "grpcio": "grpc",
    "grpc-js": "grpc",
    "tonic": "grpc",
    "net/http": "http",
    "requests": "http",
    "fetch": "http",
    "hyper-util": "http",
}
INTRODUCTION = """\
# What a failure proves

What a client library knows about a failed attempt, and so which `category` and `evidence` its kit sends. Each row is
played by a test of its language against the real library: a [faulty service](../clients/testbed/README.md) produces the
failure, and what arrives in `Decide` is compared. The rows stand in `clients/LANGUAGE/evidence.json`; this page is
written from them by `python -m testbed.evidence`.

How to read it:
- Only what the library *proves* counts: a typed error, a stream that was never opened, an answer that came or did not.
  The text of a status is the server's, and may say anything; two rows hold that nobody falls for it.
- An evidence of `-` is left to retryd, which derives it from the category or the status, and without proof reads it as
  "may have been processed".
- A status beside a category is what the library shows for want of a better word. It is told, and not judged.
- A library's own transparent retries lie beneath the row. Where one hides a failure altogether, the row says so.
"""


def main() -> None:
    page = written()
    if "--check" not in sys.argv[1:]:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page)
    elif not PAGE.exists() or PAGE.read_text() != page:
        sys.exit("docs/evidence.md is not what clients/*/evidence.json say: run `python -m testbed.evidence`")


def written() -> str:
    failures = json.loads((CLIENTS / "scenarios" / "failures.json").read_text())["failures"]
    parts = [INTRODUCTION]
    for language in LANGUAGES:
        for library, rows in json.loads((CLIENTS / language / "evidence.json").read_text()).items():
            names = [failure["name"] for failure in failures if OVER[library] in failure["over"]]
            if missing := set(names) ^ set(rows):
                sys.exit(f"clients/{language}/evidence.json, {library}: rows that lack or are too many: {missing}")
            parts.append(table(library, language, names, rows))
    return "\n".join(parts)


def table(library: str, language: str, names: list[str], rows: dict[str, dict]) -> str:
    lines = [
        f"## {library}",
        "",
        f"[clients/{language}](../clients/{language}/README.md)",
        "",
        "| failure | category | evidence | status | how the library tells |",
        "|---|---|---|---|---|",
    ]
    for name in names:
        row = rows[name]
        if "absent" in row:
            cells = ["", "", "", row["absent"]]
        else:
            cells = [row["category"], row.get("evidence") or "-", row.get("status") or "-", row["how"]]
        lines.append(" | ".join([f"| {name}", *cells]) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
