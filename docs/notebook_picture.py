"""Execute a notebook in a real Jupyter kernel against a simulated judge, and write it as one HTML file.

.venv-clients/bin/python docs/notebook_picture.py notebook.html
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
from nbconvert import HTMLExporter

CELLS = (
    """from plaudit import Engine, Rubric, Sample

engine = Engine("http://localhost:8000/v1", model="judge", cache=None)
judge = Rubric("Is it correct?", scale=(0, 10))
samples = [Sample(f"What is {n} + {n}?", str(2 * n + (n % 3 == 0))) for n in range(400)]
verdicts = engine.score(samples, judge)""",
    "verdicts[:6]",
    """pending = engine.submit([Sample(f"What is {n} + 1?", str(n + 1)) for n in range(4)], judge)
pending""",
)
SERVER = ("-m", "plaudit", "simulate", "--scenario", "rejecting", "--speed", "8", "--port", "0")


def main(path: Path) -> None:
    """Start the judge, execute the cells, and write the page without anything that it would fetch."""
    with subprocess.Popen([sys.executable, *SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[2] + "/v1"
        try:
            code = [cell.replace("http://localhost:8000/v1", url) for cell in CELLS]
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in code])
            nbclient.NotebookClient(notebook, timeout=60, coalesce_streams=True).execute()
        finally:
            server.terminate()
    for cell, shown in zip(notebook.cells, CELLS, strict=True):
        cell.source = shown
    page, _ = HTMLExporter(template_name="lab").from_notebook_node(notebook)
    path.write_text(re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
