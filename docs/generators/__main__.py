"""Write the pages that are made from the code: ``python -m docs.generators [ROOT]``, by default into this checkout."""

import shutil
import sys
from pathlib import Path

from . import api_pages, chart_page, command_page, dashboard, python_pages

REPOSITORY = Path(__file__).parents[2]
REFERENCE = "docs/reference"


def main() -> None:
    """Write all pages, and remove those of what is gone."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY
    shutil.rmtree(root / REFERENCE, ignore_errors=True)
    for path, text in _pages().items():
        page = root / path
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text.rstrip() + "\n")


def _pages() -> dict[str, str]:
    references = api_pages.pages() | python_pages.pages() | {"command-line.md": command_page.page()}
    return {f"{REFERENCE}/{name}": text for name, text in references.items()} | {
        "charts/workergroups/README.md": chart_page.page(REPOSITORY / "charts" / "workergroups"),
        "charts/workergroups/files/dashboard.json": dashboard.build(),
    }


if __name__ == "__main__":
    main()
