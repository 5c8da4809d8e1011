#!/usr/bin/env python3
"""Every text of an SVG that gnuplot drew lies inside the picture, and no two texts lie on each other.

    texts_of_pictures.py PICTURE.svg...

Widths are of the font that cairo takes for the text, which is the font of the PNG and the PDF, too.
"""
import re
import sys
import xml.etree.ElementTree as tree

try:
    import cairo
except ImportError:
    print('skipped: Python has no cairo (package python3-cairo)')
    sys.exit(77)

SVG = '{http://www.w3.org/2000/svg}'
INSIDE = 1.0    # pixels that a text may stand over the border
APART = 0.5     # pixels that two texts may share in each direction
SOUNDING = cairo.Context(cairo.SVGSurface(None, 10, 10))


def measure(text, family, size):
    """Width, height above the base line, depth below it, in pixels."""
    SOUNDING.select_font_face(family)
    SOUNDING.set_font_size(size)
    found = SOUNDING.text_extents(text)
    return found.x_advance, -found.y_bearing, found.height + found.y_bearing


def box_of(group, text):
    """The text's (left, top, right, bottom) on the picture."""
    shift = re.search(r'translate\(([-\d.]+),\s*([-\d.]+)\)', group.get('transform', ''))
    turn = re.search(r'rotate\(([-\d.]+)', group.get('transform', ''))
    x, y = float(shift[1]), float(shift[2])
    wide, above, below = measure(text, group.get('font-family'), float(group.get('font-size')))
    left = {'start': 0, 'middle': -wide / 2, 'end': -wide}[group.get('text-anchor', 'start')]
    if turn and float(turn[1]) % 360 in (270, 90):
        up = float(turn[1]) % 360 == 270
        if up:
            return x - above, y - left - wide, x + below, y - left
        return x - below, y + left, x + above, y + left + wide
    return x + left, y - above, x + left + wide, y + below


def texts_of(root):
    """All pairs of (text, box)."""
    for group in root.iter(SVG + 'g'):
        for child in group.findall(SVG + 'text'):
            text = ''.join(child.itertext())
            if text.strip():
                yield text, box_of(group, text)


def overlap(one, two):
    """Whether two boxes share more than a hair in both directions."""
    return (min(one[2], two[2]) - max(one[0], two[0]) > APART and
            min(one[3], two[3]) - max(one[1], two[1]) > APART)


def faults(path):
    """What is wrong with the texts of a picture, in words."""
    root = tree.parse(path).getroot()
    width, height = (float(n) for n in root.get('viewBox').split()[2:])
    placed = list(texts_of(root))
    for text, box in placed:
        if box[0] < -INSIDE or box[1] < -INSIDE or box[2] > width + INSIDE or box[3] > height + INSIDE:
            yield f"'{text}' at {[round(n) for n in box]} leaves the picture of {width:.0f} x {height:.0f}"
    for i, (text, box) in enumerate(placed):
        for other, its in placed[i + 1:]:
            if overlap(box, its) and (text, box) != (other, its):    # gnuplot draws a label with a box twice
                yield f"'{text}' at {[round(n) for n in box]} lies on '{other}' at {[round(n) for n in its]}"
    if not placed:
        yield 'no text at all'


failed = False
for picture in sys.argv[1:]:
    for fault in faults(picture):
        failed = True
        print(f'{picture}: {fault}')
sys.exit(failed)
