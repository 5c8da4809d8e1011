// The timeline: a canvas that draws the rows of spans in a window of time. It keeps no state of the page: the component
// below hands over what is shown, and hears what a person does.
import { lookOf, tileOf } from './palette.js';
import { time, plain, roundStep } from './format.js';

export const rowHeight = 20, axisHeight = 26, gutter = 168;
const few = 512;                 // spans that a row draws one by one (sim/page/levels.c)
const ns = 1e-9;

// The first i in [from, to) for which past(i), else to.
function bisect(from, to, past) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (past(middle)) to = middle; else from = middle + 1;
  }
  return from;
}
// The spans of a row that a window touches: [first, last).
export function spansIn(spans, row, from, to) {
  const end = row.first + row.count;
  return [bisect(row.first, end, i => spans.end[i] > from || spans.start[i] >= from),
    bisect(row.first, end, i => spans.start[i] > to)];
}
// The span of a row at a time; of spans narrower than `slack` the nearest; -1: none.
export function spanAt(spans, row, at, slack) {
  const [first, last] = spansIn(spans, row, at - slack, at + slack);
  let best = -1, distance = slack;
  for (let i = first; i < Math.min(last, first + few); i++) {
    const away = Math.max(spans.start[i] - at, at - spans.end[i], 0);
    if (away <= distance) { best = i; distance = away; if (!away) break; }
  }
  return best;
}

function label(at, width) {
  const digits = Math.max(3, Math.ceil(Math.log10(Math.max(at, 1) / width)) + 2);
  return time(at * ns, Math.min(digits, 15));
}

// The row of a span.
export const rowOf = (spans, i) => spans.rows[bisect(0, spans.rows.length, k => spans.rows[k].first > i) - 1];

export class Timeline {
  constructor(canvas, spans, head, pieces) {
    Object.assign(this, { canvas, spans, head, pieces, from: 0, to: spans.until || 1, rows: spans.rows, selected: -1, row: null, awaits: null });
    this.context = canvas.getContext('2d', { alpha: false });
    this.dress();
  }
  // Takes the colours of the page as it is now.
  dress() {
    this.looks = this.head.kinds.map(lookOf);
    this.tiles = this.looks.map(look => look.pattern ? this.context.createPattern(tileOf(look), 'repeat') : look.fill);
  }
  // Keeps the window inside the run, and not below 10 ns.
  look(from, to) {
    const until = this.spans.until || 1, width = Math.min(Math.max(to - from, 10), until);
    this.from = Math.min(Math.max(from, 0), until - width);
    this.to = this.from + width;
  }
  zoom(factor, at = (this.from + this.to) / 2) { this.look(at - (at - this.from) * factor, at + (this.to - at) * factor); }
  pan(share) { const by = share * (this.to - this.from); this.look(this.from + by, this.to + by); }
  timeAt(x) { return this.from + (x - gutter) / (this.width - gutter) * (this.to - this.from); }
  xOf(at) { return gutter + (at - this.from) / (this.to - this.from) * (this.width - gutter); }

  draw(scroll) {
    const began = performance.now(), { canvas, context } = this, scale = devicePixelRatio || 1;
    const box = canvas.getBoundingClientRect(), style = getComputedStyle(canvas);
    this.width = box.width;
    this.height = box.height;
    this.colours = { back: style.getPropertyValue('--card'), ink: style.getPropertyValue('--ink'),
      faint: style.getPropertyValue('--line'), soft: style.getPropertyValue('--soft'), link: style.getPropertyValue('--link'), path: style.getPropertyValue('--path') };
    if (canvas.width !== Math.round(box.width * scale) || canvas.height !== Math.round(box.height * scale)) {
      canvas.width = Math.round(box.width * scale);
      canvas.height = Math.round(box.height * scale);
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.fillStyle = this.colours.back;
    context.fillRect(0, 0, this.width, this.height);
    this.most = 0;
    const first = Math.floor(scroll / rowHeight), last = Math.ceil((scroll + this.height - axisHeight) / rowHeight);
    for (let i = first; i < Math.min(last, this.rows.length); i++)
      this.drawRow(this.rows[i], axisHeight + i * rowHeight - scroll, this.rows[i - 1]?.rank !== this.rows[i].rank);
    this.drawArrows(scroll);
    this.drawAxis();
    canvas.dataset.blocks = this.most;
    canvas.dataset.ms = (performance.now() - began).toFixed(2);
  }

  drawRow(row, y, isFirst) {
    const { context, spans } = this, pixel = (this.to - this.from) / (this.width - gutter);
    const [first, last] = spansIn(spans, row, this.from, this.to);
    const level = last - first > few ? row.levels.find(one => one.width >= pixel) ?? row.levels.at(-1) : undefined;
    context.save();
    context.beginPath();
    context.rect(gutter, y, this.width - gutter, rowHeight);
    context.clip();
    if (level) this.drawLevel(level, y + 2); else this.drawSpans(first, last, y + 2);
    this.drawPieces(this.pieces[`${row.rank} ${this.head.lanes[row.lane]}`], y + rowHeight - 3);
    context.restore();
    context.fillStyle = this.colours.faint;
    context.fillRect(isFirst ? 0 : 64, y, this.width, isFirst ? 1 : 0.25);
    context.fillStyle = this.colours.back;
    context.fillRect(0, y + 1, gutter, rowHeight - 1);
    context.fillStyle = this.colours.ink;
    if (isFirst) context.fillText(`rank ${row.rank}`, 4, y + rowHeight / 2 + 1, 62);
    context.fillStyle = row === this.row ? this.colours.ink : this.colours.soft;
    context.fillText(plain(this.head.lanes[row.lane]).slice(0, 40), 68, y + rowHeight / 2 + 1, gutter - 72);
  }
  // One by one; those too narrow to see keep half a pixel.
  drawSpans(first, last, y) {
    const { context, spans } = this, high = rowHeight - 3;
    this.most = Math.max(this.most, last - first);
    for (let i = first; i < last; i++) {
      const left = Math.max(this.xOf(spans.start[i]), gutter - 9), right = Math.min(this.xOf(spans.end[i]), this.width + 9);
      const wide = Math.max(right - left, 0.5), kind = spans.kind[i];
      context.fillStyle = wide > 5 ? this.tiles[kind] : this.looks[kind].fill;
      context.fillRect(left, y, wide > 3 ? wide - 0.5 : wide, high);
      if (wide > 26) this.drawName(i, Math.max(left, gutter), right, y, high);
      if (i === this.selected) {
        context.strokeStyle = this.colours.ink;
        context.lineWidth = 2;
        context.strokeRect(left, y, Math.max(wide, 2), high);
      }
    }
  }
  // From what the chosen span waits for to it, and from it to what waits for it.
  drawArrows(scroll) {
    const { context, spans, selected } = this, { before, behind } = this.awaits ?? { before: [], behind: [] };
    const y = i => axisHeight + this.rows.indexOf(rowOf(spans, i)) * rowHeight - scroll + rowHeight / 2;
    const shown = i => this.rows.includes(rowOf(spans, i));
    const arrow = (from, to, part, colour) => {
      const x0 = this.xOf(part === undefined ? spans.end[from] : spans.start[from] + part), y0 = y(from), x1 = this.xOf(spans.start[to]), y1 = y(to);
      const bend = Math.min(Math.max(Math.abs(x1 - x0) / 2, 14), 60);
      context.strokeStyle = context.fillStyle = colour;
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(x0, y0);
      if (y0 === y1) context.lineTo(x1 - 5, y1); else context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
      context.stroke();
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 - 8, y1 - 4);
      context.lineTo(x1 - 8, y1 + 4);
      context.fill();
    };
    if (selected < 0 || !shown(selected)) return;
    context.save();
    context.beginPath();
    context.rect(gutter, axisHeight, this.width - gutter, this.height - axisHeight);
    context.clip();
    for (const { i, part } of before) if (shown(i)) arrow(i, selected, part, this.colours.ink);
    for (const { i, part } of behind.slice(0, 100)) if (shown(i)) arrow(selected, i, part, this.colours.link);
    context.restore();
  }
  // The critical path, below the spans; pieces that abut, or are closer than a pixel, are one line.
  drawPieces(pieces, y) {
    if (!pieces) return;
    const { context } = this, pixel = (this.to - this.from) / (this.width - gutter);
    context.fillStyle = this.colours.path;
    let i = bisect(0, pieces.length, k => pieces[k][1] > this.from);
    while (i < pieces.length && pieces[i][0] <= this.to) {
      const from = pieces[i][0];
      let until = pieces[i][1];
      for (i++; i < pieces.length && pieces[i][0] - until < pixel; i++) until = pieces[i][1];
      const left = this.xOf(Math.max(from, this.from));
      context.fillRect(left, y, Math.max(this.xOf(Math.min(until, this.to)) - left, 1), 3);
    }
  }
  drawName(i, left, right, y, high) {
    const { context, spans } = this, name = plain(this.head.names[spans.name[i]]).slice(0, 60);
    const wide = Math.min(context.measureText(name).width + 6, right - left - 2);
    if (wide < 12 || context.measureText(name).width > right - left - 4) return;
    if (this.looks[spans.kind[i]].pattern) {
      context.fillStyle = this.looks[spans.kind[i]].fill;
      context.fillRect(left + 1, y + 2, wide, high - 4);
    }
    context.fillStyle = this.looks[spans.kind[i]].ink;
    context.fillText(name, left + 4, y + high / 2 + 0.5);
  }
  // Blocks: as high as they are busy.
  drawLevel(level, y) {
    const { context } = this, high = rowHeight - 3;
    const first = bisect(0, level.count, i => level.to[i] > this.from);
    let i = first;
    for (; i < level.count && level.from[i] <= this.to; i++) {
      const left = this.xOf(level.from[i]), part = Math.max(1, high * level.share[i] / 255);
      context.fillStyle = (this.looks[level.kind[i]] ?? lookOf('other')).fill;
      context.fillRect(left, y + high - part, Math.max(this.xOf(level.to[i]) - left, 0.5), part);
    }
    this.most = Math.max(this.most, i - first);
  }

  drawAxis() {
    const { context } = this, width = this.to - this.from, by = roundStep(width, Math.max(2, (this.width - gutter) / 130));
    context.fillStyle = this.colours.back;
    context.fillRect(0, 0, this.width, axisHeight);
    context.fillStyle = this.colours.faint;
    context.fillRect(0, axisHeight - 1, this.width, 1);
    for (let at = Math.ceil(this.from / by) * by; at <= this.to; at += by) {
      const x = this.xOf(at);
      context.fillStyle = this.colours.faint;
      context.fillRect(x, axisHeight - 6, 1, 6);
      context.fillStyle = this.colours.ink;
      context.fillText(label(at, by), x + 3, 12);
    }
  }
}
