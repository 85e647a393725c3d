"""A figure with one or two curves over logarithmic axes, as SVG."""

import html
import math

WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 44, 52
COLORS = ["#0b6bcb", "#b3470b", "#2e7d32"]


def decades(low, high):
    """The powers of ten around both."""
    return math.floor(math.log10(low)), max(math.ceil(math.log10(high)), math.floor(math.log10(low)) + 1)


def number(value):
    """1000 as `1 000`, 0.001 as it is, 1000000 as `10⁶`."""
    if value >= 100_000:
        return "10" + str(round(math.log10(value))).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{value:,.0f}".replace(",", " ") if value >= 1 else f"{value:g}"


def draw(title, across, up, curves):
    """`curves`: a name and its points (x, y), all above 0."""
    points = [point for _, each in curves for point in each]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    left, right = math.log10(min(xs)), max(math.log10(max(xs)), math.log10(min(xs)) + 0.3)
    bottom, top = decades(min(ys), max(ys))

    def place(x, y):
        across = LEFT + (math.log10(x) - left) / (right - left) * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - (math.log10(y) - bottom) / (top - bottom) * (HEIGHT - TOP - BOTTOM)

    def text(x, y, words, anchor="middle", extra=""):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{html.escape(words)}</text>'

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" '
             f'role="img" aria-label="{html.escape(title, quote=True)}">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', text(WIDTH / 2, 20, title, extra=' font-size="14"')]
    for power in range(bottom, top + 1):
        _, y = place(min(xs), 10**power)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#d8d8d8"/>')
        parts.append(text(LEFT - 6, y + 4, number(10**power), "end"))
    for x in sorted(set(xs)):
        at, _ = place(x, 10**bottom)
        parts.append(text(at, HEIGHT - BOTTOM + 18, number(x)))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, across))
    parts.append(text(16, (TOP + HEIGHT - BOTTOM) / 2, up, extra=f' transform="rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2:.1f})"'))
    for color, (name, each) in zip(COLORS, curves):
        places = [place(x, y) for x, y in each]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in places]
        parts.append(text(places[-1][0] - 4, places[-1][1] - 8, name, "end", f' fill="{color}"'))
    return "\n".join([*parts, "</svg>", ""])
