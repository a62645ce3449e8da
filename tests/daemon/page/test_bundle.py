"""What is in the wheel is what the sources say, and a report holds a kernel's text harmlessly."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from fsrd.page.report import STATIC, inside_script

SOURCES = Path(__file__).parents[3] / "daemon" / "page"


def test_the_bundle_was_built_from_these_sources() -> None:
    """After a change under daemon/page: cd daemon/page && npm ci && npm run build."""
    told = hashlib.sha256()
    for path in sorted((SOURCES / "src").iterdir()):
        told.update(path.name.encode() + b"\0" + path.read_bytes())
    told.update((SOURCES / "package-lock.json").read_bytes())
    assert (STATIC / "sources.sha256").read_text().strip() == told.hexdigest()


def test_the_page_asks_nobody_else_for_anything() -> None:
    page = (STATIC / "index.html").read_text()
    assert 'src="app.js"' in page
    assert "://" not in page
    assert "@import" not in (STATIC / "app.css").read_text()
    assert "url(http" not in (STATIC / "app.css").read_text()


def test_a_kernel_that_ends_the_script_stays_data() -> None:
    text = {"original": '// </script><script>alert("1")</script><!-- & -->'}
    inside = inside_script(json.dumps(text))
    assert not {"<", ">", "&"} & set(inside)
    assert json.loads(inside) == text
