"""Makes docs/why.md anew: runs each command that it shows after a `$`, and puts what the command prints below it.

From the root of the repository: cargo build --profile ci && python3 docs/why/make.py target/ci/retryd
One seed gives the same figures everywhere, so `git diff docs` shows what a change of the engine or of the model altered."""
import pathlib
import re
import shlex
import subprocess
import sys

DOCUMENT = pathlib.Path(__file__).parents[1] / "why.md"
SHOWN = re.compile(r"(?<=^```console\n)\$ retryd (.*)\n(?:(?!```).*\n)*", re.MULTILINE)


def run(shown: re.Match) -> str:
    said = subprocess.run([sys.argv[1], *shlex.split(shown[1])], check=True, capture_output=True, text=True)
    return f"$ retryd {shown[1]}\n{said.stdout}"


DOCUMENT.write_text(SHOWN.sub(run, DOCUMENT.read_text()))
