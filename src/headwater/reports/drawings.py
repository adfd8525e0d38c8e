"""Small drawings that need no plotting library: curves in a line, graphs of passages. All of it is numbers and escaped text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from headwater.diagnostics.description import Matrix
from headwater.diagnostics.text_width import cut_to_width, text_width

Place = tuple[float, float]

STATE_LIMIT = 12  # of a graph that is still read
LEAST_PROBABILITY = 0.001  # of a transition that is drawn
CROWDED_STATES = 4  # with more, only frequent transitions are drawn, so that all numbers can be read
LEAST_SHARE = 0.1  # of the transitions to other states, in a crowded graph
CIRCLE_LETTERS = 7  # of a name that fits into its circle
NAME_LETTERS = 24  # of a name that stands beside its circle
LETTER_WIDTH = 6.5  # of a Latin letter beside a circle
NUMBER_PLACE = 0.4  # of the way along an arrow; in the middle, numbers of crossing arrows would meet


def sparkline(values: Sequence[float], label: str, width: int = 240, height: int = 48) -> Markup:
    """Draw a curve without axes."""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = width / max(len(values) - 1, 1)
    points = " ".join(
        f"{at * step:.1f},{height - 2 - (value - low) / span * (height - 4):.1f}" for at, value in enumerate(values)
    )
    return Markup(
        '<svg class="spark" viewBox="0 0 {w} {h}" preserveAspectRatio="none" role="img" aria-label="{label}">'
        '<polygon points="0,{h} {points} {w},{h}"/><polyline points="{points}"/></svg>'
    ).format(w=width, h=height, label=label, points=points)


def transition_graph(matrix: Matrix, colors: Sequence[str], tip: str = "tip") -> Markup | None:
    """Draw states as circles, as large as they are frequent, and passages as arrows, as thick as they are probable."""
    size = len(matrix.names)
    if not 2 <= size <= STATE_LIMIT:
        return None
    often = matrix.often or (1.0 / size,) * size
    centre, ring = (220.0, 190.0), 118.0
    radii = [14.0 + 26.0 * math.sqrt(share) for share in often]
    angles = [2.0 * math.pi * at / size - 0.5 * math.pi for at in range(size)]
    if size == 2:
        angles = [math.pi, 0.0]
    places = [(centre[0] + ring * math.cos(angle), centre[1] + ring * math.sin(angle)) for angle in angles]
    least = [_least_drawn(size, 1.0 - matrix.values[a][a]) for a in range(size)]
    arrows = [_arrow(places[a], places[b], radii[a], radii[b], matrix.values[a][b], tip)
              for a in range(size) for b in range(size) if a != b and matrix.values[a][b] >= least[a]]  # fmt: skip
    arrows += [_loop(places[a], angles[a], radii[a], matrix.values[a][a], tip)
               for a in range(size) if matrix.values[a][a] >= LEAST_PROBABILITY]  # fmt: skip
    marks = [line for line, _ in arrows]
    names = [name.removeprefix("state ") for name in matrix.names]
    beside = [cut_to_width(name, NAME_LETTERS) if text_width(name) > CIRCLE_LETTERS else "" for name in names]
    for at, (x, y) in enumerate(places):
        marks.append(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}" fill="{}"/>').format(x, y, radii[at], colors[at]))
        if not beside[at]:
            marks.append(Markup('<text class="node" x="{:.1f}" y="{:.1f}">{}</text>').format(x, y, names[at]))
    marks += [number for _, number in arrows]  # above all lines
    marks += [_name_beside(names[at], places[at], radii[at]) for at in range(size) if beside[at]]
    label = f"{matrix.title}: " + ", ".join(
        f"{matrix.names[at]} is there {share:.0%} of the time" for at, share in enumerate(often)
    )
    return Markup(
        '<svg class="graph" viewBox="{:.0f} {:.0f} {:.0f} {:.0f}" role="img" aria-label="{}">'
        '<defs><marker id="{}" viewBox="0 0 10 10" '
        'refX="8" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M0,1 L10,5 L0,9 z"/></marker></defs>{}</svg>'
    ).format(*_frame(places, radii, beside), label, tip, Markup("").join(marks))


def _least_drawn(size: int, leaving: float) -> float:
    """Return the probability from which on a transition to another state is drawn; all of them leave with `leaving`."""
    return LEAST_PROBABILITY if size <= CROWDED_STATES else max(LEAST_PROBABILITY, LEAST_SHARE * leaving)


def _name_beside(name: str, place: Place, radius: float) -> Markup:
    """A long name beneath its circle."""
    return Markup('<text class="name" x="{:.1f}" y="{:.1f}">{}<title>{}</title></text>').format(
        place[0], place[1] + radius + 11.0, cut_to_width(name, NAME_LETTERS), name
    )


def _frame(places: Sequence[Place], radii: Sequence[float], beside: Sequence[str]) -> tuple[float, float, float, float]:
    """Left, top, width and height of what is drawn, with room for loops and for names beside circles."""
    across = [max(radius + 42.0, 0.5 * LETTER_WIDTH * text_width(name)) for radius, name in zip(radii, beside, strict=True)]
    left = min(x - far for (x, _), far in zip(places, across, strict=True))
    right = max(x + far for (x, _), far in zip(places, across, strict=True))
    top = min(y - radius - 42.0 for (_, y), radius in zip(places, radii, strict=True))
    bottom = max(y + radius + 42.0 for (_, y), radius in zip(places, radii, strict=True))
    return left, top, right - left, bottom - top


def _arrow(
    start: tuple[float, float], end: tuple[float, float], from_radius: float, to_radius: float, share: float, tip: str
) -> tuple[Markup, Markup]:
    """An arc from one circle to another, bent to the left, so that two that go back and forth lie apart."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    bend = 0.16 * length
    middle = ((start[0] + end[0]) / 2 + dy / length * bend, (start[1] + end[1]) / 2 - dx / length * bend)
    ax, ay = _move_towards(start, middle, from_radius + 1.0)
    bx, by = _move_towards(end, middle, to_radius + 3.0)
    u, t = 1.0 - NUMBER_PLACE, NUMBER_PLACE
    tx = u * u * ax + 2.0 * u * t * middle[0] + t * t * bx
    ty = u * u * ay + 2.0 * u * t * middle[1] + t * t * by
    return _path(f"M{ax:.1f},{ay:.1f} Q{middle[0]:.1f},{middle[1]:.1f} {bx:.1f},{by:.1f}", share, tx, ty, tip)


def _loop(place: Place, angle: float, radius: float, share: float, tip: str) -> tuple[Markup, Markup]:
    """An arc from a circle to itself, on the outside."""
    one, other = angle - 0.5, angle + 0.5
    far = radius + 34.0
    x, y = place

    def at(turn: float, distance: float) -> Place:
        return x + distance * math.cos(turn), y + distance * math.sin(turn)

    (ax, ay), (bx, by) = at(one, radius + 1.0), at(other, radius + 3.0)
    (px, py), (qx, qy) = at(one - 0.12, far), at(other + 0.12, far)
    tx, ty = at(angle, radius + 30.0)
    return _path(f"M{ax:.1f},{ay:.1f} C{px:.1f},{py:.1f} {qx:.1f},{qy:.1f} {bx:.1f},{by:.1f}", share, tx, ty, tip)


def _path(line: str, share: float, x: float, y: float, tip: str) -> tuple[Markup, Markup]:
    """The line of an arrow, and the number that it carries."""
    drawn = Markup('<path d="{}" stroke-width="{:.2f}" opacity="{:.2f}" marker-end="url(#{})"><title>{}</title></path>').format(
        line, 0.7 + 3.3 * share, 0.35 + 0.6 * share, tip, f"{share:.1%}"
    )
    return drawn, Markup('<text x="{:.1f}" y="{:.1f}">{}</text>').format(x, y, _two_digits(share))


def _two_digits(share: float) -> str:
    return f"{share:.2f}" if share >= 0.0995 else f"{share:.2g}"


def _move_towards(start: Place, end: Place, distance: float) -> Place:
    dx, dy = end[0] - start[0], end[1] - start[1]
    share = distance / max(math.hypot(dx, dy), 1e-9)
    return start[0] + dx * share, start[1] + dy * share
