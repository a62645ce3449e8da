"""A run as one self-contained HTML file: the page's bundle with the run's data inside."""

from __future__ import annotations

import html
import json
from pathlib import Path

from fsr.runs.record import RunRecord
from fsr.runs.view import run_view

STATIC = Path(__file__).parent / "static"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline';
 style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="app"></div>
<script type="application/json" id="fsr-run">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def report(record: RunRecord) -> str:
    """The text of the file. Raises UsageError when there is no such run, StorageError for a damaged log."""
    return PAGE.format(
        title=html.escape(f"fsr: {record.name}"), style=(STATIC / "app.css").read_text(encoding="utf-8"),
        data=inside_script(json.dumps(run_view(record))),
        script=(STATIC / "app.js").read_text(encoding="utf-8").replace("</script", "<\\/script"),
    )  # fmt: skip


def inside_script(text: str) -> str:
    """JSON that ends no script element and begins no comment there, whatever a kernel's text holds."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
