"""Makes the small pictures of the mock-ups that docs/guides/web-ui-design.md shows beside the real pages.

python docs/guides/make_mockups.py FOLDER

The folder holds prints of the mock-ups, NAME-light.png and NAME-dark.png. The real pages are photographed
by make_screenshots.py. Needs Pillow.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

PICTURES = Path(__file__).parent / "pictures" / "mockups"
SIZE = (1080, 675)
QUALITY = 62
SCHEMES = ("light", "dark")


def main(folder: Path) -> None:
    PICTURES.mkdir(exist_ok=True)
    for scheme in SCHEMES:
        for path in sorted(folder.glob(f"*-{scheme}.png")):
            with Image.open(path) as image:
                small = image.convert("RGB").resize(SIZE, Image.Resampling.LANCZOS)
            small.save(PICTURES / f"{path.stem}.webp", quality=QUALITY, method=6)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
