"""The kit, rendered as its users would. As a program it writes the snapshots anew."""
import subprocess
from functools import cache
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "retryd"
TOOLS = ROOT / "target" / "tools"

# Each rendering is compared with its snapshot, and has to pass every check of objects.
NAMES = ["helm-default", "helm-store", "helm-everything", "helm-bare", "helm-tls", "kustomize-base", "kustomize-store"]


def run(program: Path | str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def helm(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run(TOOLS / "bin" / "helm", *arguments)


@cache
def text(name: str) -> str:
    """A rendering, as it would be sent to a cluster."""
    tool, _, variant = name.partition("-")
    if tool == "helm":
        rendered = helm("template", "retryd", CHART, "--values", HERE / "values" / f"{variant}.yaml")
    else:
        folder = DEPLOY / "kustomize" / "base" if variant == "base" else HERE / "overlays" / variant
        rendered = run(TOOLS / "bin" / "kubectl", "kustomize", folder)
    assert rendered.returncode == 0, f"{name}: {rendered.stderr}"
    return rendered.stdout


def objects(name: str) -> list[dict]:
    """The objects of a rendering, fresh for each caller."""
    return [found for found in yaml.safe_load_all(text(name)) if found]


def only(kind: str, among: list[dict]) -> dict:
    [found] = [candidate for candidate in among if candidate["kind"] == kind]
    return found


def snapshot(name: str) -> Path:
    return HERE / "snapshots" / f"{name}.yaml"


if __name__ == "__main__":
    for each in NAMES:
        snapshot(each).write_text(text(each))
        print(f"wrote {snapshot(each).relative_to(ROOT)}")
