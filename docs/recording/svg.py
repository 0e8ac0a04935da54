"""Frames as one animated SVG, with no script and no font from elsewhere."""

from collections.abc import Iterator, Sequence
from html import escape

from .frames import Frame, Run
from .terminal import COLUMNS, LINES

WIDTH, HEIGHT, MARGIN = 8.4, 18, 14
COLORS = {
    "default": "#d7dae0",
    "red": "#ff7b72",
    "green": "#7ee787",
    "brown": "#e3b341",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#76e3ea",
}
"""By pyte's names, in which yellow is brown."""
STYLE = "text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}.f{opacity:0}"


def drawing(frames: Sequence[Frame]) -> str:
    """The whole file; it begins again after the last frame."""
    width, height = round(COLUMNS * WIDTH + 2 * MARGIN), LINES * HEIGHT + 2 * MARGIN
    total = sum(frame.seconds for frame in frames)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
            f"<style>{STYLE}{''.join(_timings(frames, total))}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#1c1f26"/>',
            *(f'<g class="f" id="f{index}">{"".join(_texts(frame))}</g>' for index, frame in enumerate(frames)),
            "</svg>\n",
        ]
    )


def _timings(frames: Sequence[Frame], total: float) -> Iterator[str]:
    begun = 0.0
    for index, frame in enumerate(frames):
        start, end = 100 * begun / total, 100 * (begun + frame.seconds) / total
        yield f"@keyframes k{index}{{0%{{opacity:0}}{start:.3f}%{{opacity:1}}{end:.3f}%,to{{opacity:0}}}}"
        yield f"#f{index}{{animation:k{index} {total:.2f}s step-end infinite}}"
        begun += frame.seconds


def _texts(frame: Frame) -> Iterator[str]:
    for line, runs in enumerate(frame.lines):
        for run in runs:
            yield _text(run, MARGIN + (line + 1) * HEIGHT - 4)


def _text(run: Run, y: int) -> str:
    length = len(run.text.rstrip()) * WIDTH
    bold = ' font-weight="bold"' if run.is_bold else ""
    return (
        f'<text x="{MARGIN + run.column * WIDTH:.1f}" y="{y}" fill="{COLORS.get(run.color, COLORS["default"])}"{bold} '
        f'textLength="{length:.1f}">{escape(run.text.rstrip())}</text>'
    )
