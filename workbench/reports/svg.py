"""Smaller SVG for pages: the same picture in about two fifths of the bytes that Matplotlib writes.

Names that nothing refers to, groups that say nothing, line ends, and rotations by nothing are left out; neighbouring
strokes of one style become one path, marks that are one line become strokes, and styles that occur several times become
classes.
"""

import re
import zlib
from collections import Counter
from collections.abc import Iterator

import numpy as np

_REFERENCE = re.compile(r'(?:href="#|url\(#)([^")]+)')
_NO_ROTATION = re.compile(r' transform="rotate\(-?0 [^)]*\)"')
_XLINK = ' xmlns:xlink="http://www.w3.org/1999/xlink"'
_PATH = re.compile(r'(?<= d=")([^"]*)')
_PLACE = re.compile(r'(?:(?<= [xy]=")|(?<= c[xy]="))(-?[\d.]+)(?=")')
_NAME = re.compile(r'(?:(?<=class=")|(?<=id=")|(?<=href="#)|(?<=url\(#)|(?<=[>}]\.))(s[0-9a-z]{2,8}(?:-\d+)?)(?=["){])')
_STYLE = re.compile(r' style="([^"]*)"')
_STROKE = re.compile(r'<path d="([^"]*)"( clip-path="[^"]*")? style="(fill: none;[^"]*)"/>')
_STROKES = re.compile(rf"(?:{_STROKE.pattern}){{2,}}")
_NUMBERS = r"(-?[\d.]+) (-?[\d.]+)"
_USE = r'<use href="#([^"]*)" x="(-?[\d.]+)" y="(-?[\d.]+)"/>'
_USES = rf"(?:{re.sub(r'[(](?![?])', '(?:', _USE)})+"
_MARK = re.compile(rf'<path id="([^"]*)" d="M{_NUMBERS}L{_NUMBERS}"((?: style="[^"]*")?)/>')
_LINES = r'<path d="(M[^"A-Za-z]*[hv][^"]*)'
_NEIGHBOURS = re.compile(_LINES + r'("[^>]*/>)(?:<path d="M[^"A-Za-z]*[hv][^"]*\2)+')
OFTEN = 2
"""Uses of a style from which on it is a class."""


def shrink(svg: str, place: str) -> str:
    r"""Return the SVG of a chart with fewer bytes; its ids begin with a hash of `place`, unique on a page.

    >>> shrink('<svg><g id="a">\n <g><path d="M 0 0 \nL 2 1.123 \n" style="fill: none"/>\n </g></g></svg>', "p")
    '<svg><path d="M0 0l2 1.1" style="fill: none"/></svg>'
    """
    text = re.sub(r">\s*\n\s*<", "><", svg)
    pieces = _PATH.split(text)
    pieces[1::2] = re.sub(r" ?([A-Za-z\0]) ?", r"\1", re.sub(r"\s+", " ", "\0".join(pieces[1::2]))).strip().split("\0")
    text = "".join(pieces)
    text = _NO_ROTATION.sub("", text).replace("xlink:href=", "href=").replace(_XLINK, "")
    pieces = _PLACE.split(text)
    pieces[1::2] = [f"{float(place):.1f}".removesuffix(".0") for place in pieces[1::2]]
    text = "".join(pieces)
    text = _with_styled_groups(_with_short_names(text, _short_name(place)))
    text = _without_plain_groups(text)
    text = _STROKES.sub(lambda found: "".join(_joined(_STROKE.findall(found[0]))), text)
    text = _with_drawn_marks(text)
    pieces = _PATH.split(text)
    pieces[1::2] = map(_relative, pieces[1::2])
    return _with_classes("".join(pieces))


def _short_name(text: str) -> str:
    """Return a name of at most 8 characters made from a hash of the text.

    >>> _short_name("time_density-1")
    's1qjskkr'
    """
    return f"s{np.base_repr(zlib.crc32(text.encode()), 36).lower()}"


def _relative(path: str) -> str:
    """Return the data of a path of straight lines with one decimal, each point relative to the one before.

    A tenth of a point cannot be seen. Curves, which are parts of marks, stay as they are.

    >>> _relative("M10 20.26L30 20.31L29 21.9z"), _relative("M1 2L3 2M4 5v6")
    ('M10 20.3h20l-1 1.6z', 'M1 2h2M4 5v6')
    """
    if re.search("[^-MLhvz0-9. ]", path):
        return path
    x = y = 0
    written = []
    for command, numbers in re.findall(r"([MLhvz])([^MLhvz]*)", path):  # no calls in here: points are many
        if command in "ML":
            left, top = map(float, numbers.split())
            before, (x, y) = (x, y), (round(10 * left), round(10 * top))
            if command == "M":
                written.append(f"M{x / 10} {y / 10}")
            elif y == before[1]:
                written.append(f"h{(x - before[0]) / 10}")
            elif x == before[0]:
                written.append(f"v{(y - before[1]) / 10}")
            else:
                written.append(f"l{(x - before[0]) / 10} {(y - before[1]) / 10}")
        elif command == "z":
            written.append("z")
        else:
            step = round(10 * float(numbers))
            x, y = x + step * (command == "h"), y + step * (command == "v")
            written.append(f"{command}{step / 10}")
    short = re.sub(r"(?<=\d)\.0(?!\d)|(?<!\d)0(?=\.[1-9])", "", "".join(written))
    return re.sub(r" (?=-)", "", short)


def _with_short_names(svg: str, prefix: str) -> str:
    """Return the SVG with referenced ids renamed to "PREFIX-N"; others are removed, except titles and descriptions."""
    used = dict.fromkeys(_REFERENCE.findall(svg))
    kept = "|".join(map(re.escape, used))
    text = re.sub(rf' id="(?!(?:{kept})"|[^"]*-(?:title|desc)")[^"]*"', "", svg)
    for number, name in enumerate(used):
        for start, end in (('id="', '"'), ('href="#', '"'), ("url(#", ")")):
            text = text.replace(f"{start}{name}{end}", f"{start}{prefix}-{number}{end}")
    return text


def _joined(strokes: list[tuple[str, str, str]]) -> Iterator[str]:
    """Yield path elements in which consecutive strokes of one style are joined.

    Each stroke is (data, clip path, style). Transparent or dashed ones are not joined: where they cross or begin they
    would look different.
    """
    data: list[str] = []
    for number, (path, clip, style) in enumerate(strokes):
        data.append(path)
        following = strokes[number + 1][1:] if number + 1 < len(strokes) else None
        if following != (clip, style) or "opacity" in style or "dash" in style:
            yield f'<path d="{"".join(data)}"{clip} style="{style}"/>'
            data = []


def _with_styled_groups(svg: str) -> str:
    """Return the SVG with the style of marks moved to their group, if all its marks have the same."""

    def styled(found: re.Match) -> str:
        """Return the replacement of a matched group of marks, with the common style on it; unchanged without one."""
        styles = set(_STYLE.findall(found[2]))
        if len(styles) != 1 or found[2].count(" style=") != found[2].count("<use "):
            return found[0]
        return f'<g{found[1]} style="{styles.pop()}">{_STYLE.sub("", found[2])}</g>'

    return re.sub(r"<g((?: clip-path=\"[^\"]*\")?)>((?:<use [^>]*/>)+)</g>", styled, svg)


def _without_plain_groups(svg: str) -> str:
    """Return the SVG without tags of groups that have no attribute, and without empty definitions."""
    pieces = re.split(r"(<g>|<g [^>]*(?<!/)>|</g>)", svg.replace("<defs></defs>", ""))
    kept = list[bool]()
    for number in range(1, len(pieces), 2):
        if pieces[number] != "</g>":
            kept.append(pieces[number] != "<g>")
        if pieces[number] == "<g>" or (pieces[number] == "</g>" and not kept.pop()):
            pieces[number] = ""
    return "".join(pieces)


def _with_drawn_marks(svg: str) -> str:
    """Return the SVG in which marks that are one horizontal or vertical line are drawn as strokes, not references.

    A stroke takes a third of the bytes. Transparent marks stay.
    """
    marks = {found[1]: found for found in _MARK.finditer(svg)}

    def replaced(found: re.Match) -> str:
        """Return the replacement of a matched group of marks by one path; unchanged if its marks are no such lines."""
        uses = re.findall(_USE, found[2])
        names = {name for name, _, _ in uses}
        mark = marks.get(names.pop())
        lines = [_line(mark, float(x), float(y)) for _, x, y in uses] if mark is not None and not names else [""]
        if mark is None or not all(lines) or "opacity" in found[1] + mark[6]:
            return found[0]
        style = "; ".join([*_STYLE.findall(found[1]), *_STYLE.findall(mark[6])])
        return f'<path d="{"".join(lines)}"{_STYLE.sub("", found[1])} style="{style}"/>'

    text = re.sub(rf"<g((?: [^>]*)?)>({_USES})</g>", replaced, svg)
    text = _NEIGHBOURS.sub(lambda found: f'<path d="{"".join(re.findall(_LINES, found[0]))}{found[2]}', text)
    referred = set(_REFERENCE.findall(text))
    return re.sub(r'<defs><path id="([^"]*)"[^>]*/></defs>', lambda found: found[0] * (found[1] in referred), text)


def _line(mark: re.Match, x: float, y: float) -> str:
    """Return path data of a matched horizontal or vertical mark at (x, y); "" if it is neither."""
    left, top, right, bottom = map(float, mark.group(2, 3, 4, 5))
    if top != bottom and left != right:
        return ""
    along = f"h{right - left:g}" if top == bottom else f"v{bottom - top:g}"
    return f"M{x + left:.2f} {y + top:.2f}{along}"


def _with_classes(svg: str) -> str:
    """Return the SVG with styles that occur at least `OFTEN` times as classes, in a style sheet at its beginning.

    A class is named by a hash of its style, so that charts of one page never conflict.
    """
    counts = Counter(_STYLE.findall(svg))
    names = {style: _short_name(style) for style, count in counts.items() if count >= OFTEN}
    if not names:
        return svg
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    for style, name in names.items():
        svg = svg.replace(f' style="{style}"', f' class="{name}"')
    start, rest = svg.split(">", 1)
    return f"{start}><style>{rules}</style>{rest}"


def with_rules_once(page: str) -> str:
    """Return a page in which style rules that an earlier chart has are removed, and names are shortened to numbers."""
    known = set[str]()

    def new(found: re.Match) -> str:
        """Return the replacement of a matched style sheet: the rules that are new on the page."""
        rules = [rule for rule in re.findall(r"[^}]*}", found[1]) if rule not in known]
        known.update(rules)
        return f"<style>{''.join(rules)}</style>" if rules else ""

    return _numbered(re.sub(r"(?<=>)<style>((?:\.s\w+{[^{}]*})+)</style>", new, page))


def _numbered(page: str) -> str:
    """Return a page whose charts have classes and ids renamed to "s0", "s1", ... in order of occurrence."""
    names: dict[str, str] = {}

    def numbered(found: re.Match) -> str:
        """Return the replacement of a matched chart."""
        pieces = _NAME.split(found[0])
        pieces[1::2] = [names.setdefault(name, f"s{len(names)}") for name in pieces[1::2]]
        return "".join(pieces)

    return re.sub(r"<svg\b.*?</svg>", numbered, page, flags=re.DOTALL)
