// The timeline with its buttons, its search and the span that a person chose.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { html, Swatch, Fact } from './parts.js';
import { Timeline, spanAt, rowOf, rowHeight, axisHeight, gutter } from './timeline.js';
import { useTheme } from './theme.js';
import { lookOf } from './palette.js';
import { time, bytes, short } from './format.js';

const ns = 1e-9;
const kindOfLane = name => name.split(/[. ]/)[0];

// What is known of a span, as [name, text] pairs.
function factsOf(spans, head, i, row) {
  const seconds = at => time(at * ns, 10);
  const facts = [['kind', short(head.kinds[spans.kind[i]])], ['rank', `${row.rank}`], ['lane', short(head.lanes[row.lane])]];
  if (spans.stage[i]) facts.push(['stage', `${spans.stage[i] - 1}`]);
  facts.push(['starts', seconds(spans.start[i])], ['ends', seconds(spans.end[i])], ['takes', seconds(spans.end[i] - spans.start[i])]);
  if (spans.communication[i]) facts.push(['of it communication', seconds(spans.communication[i])]);
  if (head.ops[spans.op[i]]) facts.push(['operation', head.ops[spans.op[i]].replaceAll('_', '-')]);
  if (head.sizes[spans.size[i]]) facts.push(['bytes', bytes(head.sizes[spans.size[i]])]);
  if (spans.peer[i]) facts.push(['to rank', `${spans.peer[i] - 1}`]);
  return facts;
}

// The next span after the chosen one, by row and then by time, whose name or kind has the words in it.
function search(spans, head, rows, words, chosen) {
  const low = words.toLowerCase(), has = text => text.toLowerCase().includes(low);
  const names = head.names.map(has), kinds = head.kinds.map(has);
  let count = 0, next = null, first = null, past = chosen.i < 0;
  for (const row of rows)
    for (let i = row.first; i < row.first + row.count; i++) {
      if (names[spans.name[i]] || kinds[spans.kind[i]]) {
        count++;
        first ??= { i, row };
        if (past) next ??= { i, row };
      }
      past ||= i === chosen.i;
    }
  return { count, found: next ?? first };
}

// Spans as buttons that choose them.
function Others({ id, name, others, spans, head, choose }) {
  if (!others.length) return '';
  return html`<p id=${id}>${name} ${others.slice(0, 12).map(({ i }) => html`<button class="small" onClick=${() => choose(i, rowOf(spans, i), true)}>
    ${short(head.names[spans.name[i]], 40)}, rank ${rowOf(spans, i).rank}</button> `)}${others.length > 12 ? `and ${others.length - 12} more` : ''}</p>`;
}

export function TimelineView({ spans, head, pieces }) {
  const canvas = useRef(), scroller = useRef(), words = useRef(), line = useRef(), pointer = useRef(null);
  const [hidden, setHidden] = useState({}), [chosen, setChosen] = useState({ i: -1, row: null });
  const [tip, setTip] = useState(null), [said, setSaid] = useState(''), [window_, setWindow] = useState('');
  const dark = useTheme();
  const laneKinds = useMemo(() => [...new Set(head.lanes.map(kindOfLane))], [head]);
  const rows = useMemo(() => spans.rows.filter(row => !hidden[kindOfLane(head.lanes[row.lane])]), [hidden]);

  const redraw = () => {
    const now = line.current;
    if (!now || now.waits) return;
    now.waits = requestAnimationFrame(() => {
      now.waits = 0;
      if (!scroller.current) return;       // the page shows another timeline by now
      now.draw(scroller.current.scrollTop);
      setWindow(`${time(now.from * ns, 6)} to ${time(now.to * ns, 6)} of ${time(spans.until * ns, 6)}`);
    });
  };
  const change = act => { act(line.current); setTip(null); redraw(); };
  const choose = (i, row, show) => {
    setChosen({ i, row });
    if (i >= 0 && show) {
      const now = line.current, width = now.to - now.from, middle = (spans.start[i] + spans.end[i]) / 2;
      const wide = Math.max(width, 4 * (spans.end[i] - spans.start[i]));
      const next = Math.min(wide, 200 * (spans.end[i] - spans.start[i]) || wide);
      if (next < width || middle < now.from || middle > now.to || wide > width) now.look(middle - next / 2, middle + next / 2);
      const y = rows.indexOf(row) * rowHeight, box = scroller.current;
      if (y < box.scrollTop || y > box.scrollTop + box.clientHeight - axisHeight - rowHeight) box.scrollTop = y - box.clientHeight / 3;
    }
  };

  useEffect(() => {
    line.current = window.dtsimReport.line = new Timeline(canvas.current, spans, head, pieces);
    const watch = new ResizeObserver(redraw);
    watch.observe(scroller.current);
    // wheels that zoom must not scroll the page: such a listener cannot be a property
    const wheel = event => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey && !event.deltaX) return;
      event.preventDefault();
      const at = line.current.timeAt(event.clientX - canvas.current.getBoundingClientRect().left);
      if (event.ctrlKey || event.metaKey) change(now => now.zoom(1.0015 ** event.deltaY, at));
      else change(now => now.pan((event.deltaX || event.deltaY) / 800));
    };
    scroller.current.addEventListener('wheel', wheel, { passive: false });
    const slash = event => {
      if (event.key !== '/' || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
      event.preventDefault();
      words.current.focus();
    };
    document.addEventListener('keydown', slash);
    return () => { watch.disconnect(); document.removeEventListener('keydown', slash); };
  }, []);
  const awaits = useMemo(() => chosen.i >= 0 ? spans.awaits(chosen.i) : { before: [], behind: [] }, [chosen]);
  useEffect(() => {
    Object.assign(line.current, { rows, selected: chosen.i, row: chosen.row, awaits });
    redraw();
  }, [rows, chosen]);
  useEffect(() => { line.current.dress(); line.current.draw(scroller.current.scrollTop); redraw(); }, [dark]);

  const spot = event => {
    const box = canvas.current.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const row = rows[Math.floor((y - axisHeight + scroller.current.scrollTop) / rowHeight)], now = line.current;
    if (!row || x < gutter || y < axisHeight) return { x, y, i: -1, row: null };
    return { x, y, row, i: spanAt(spans, row, now.timeAt(x), 2 * (now.to - now.from) / now.width) };
  };
  const down = event => {
    pointer.current = { x: event.clientX, y: event.clientY, from: line.current.from, top: scroller.current.scrollTop, moved: false };
    canvas.current.setPointerCapture(event.pointerId);
  };
  const move = event => {
    const held = pointer.current;
    if (!held) {
      const at = spot(event);
      setTip(at.i >= 0 ? at : null);
      return;
    }
    held.moved ||= Math.abs(event.clientX - held.x) + Math.abs(event.clientY - held.y) > 3;
    if (!held.moved) return;
    scroller.current.scrollTop = held.top - (event.clientY - held.y);
    change(now => {
      const width = now.to - now.from, by = (event.clientX - held.x) / (now.width - gutter) * width;
      now.look(held.from - by, held.from - by + width);
    });
  };
  const up = event => {
    const held = pointer.current;
    pointer.current = null;
    if (held?.moved) return;
    const at = spot(event);
    choose(at.i, at.row, false);
  };
  const beside = by => {
    const { i, row } = chosen, next = i + by;
    if (i >= 0 && next >= row.first && next < row.first + row.count) choose(next, row, true);
  };
  const keys = {
    ArrowLeft: event => event.shiftKey ? beside(-1) : change(now => now.pan(-0.1)),
    ArrowRight: event => event.shiftKey ? beside(1) : change(now => now.pan(0.1)),
    ArrowUp: () => { scroller.current.scrollTop -= rowHeight; },
    ArrowDown: () => { scroller.current.scrollTop += rowHeight; },
    '+': () => change(now => now.zoom(0.7)), '=': () => change(now => now.zoom(0.7)), '-': () => change(now => now.zoom(1 / 0.7)),
    Home: () => change(now => now.look(0, spans.until)), Escape: () => choose(-1, null, false),
  };
  const key = event => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key](event);
  };
  const find = event => {
    event.preventDefault();
    const text = words.current.value;
    if (!text) return setSaid('');
    const { count, found } = search(spans, head, rows, text, chosen);
    setSaid(count ? `${count.toLocaleString('en')} spans have it in their name or kind; Enter shows the next one` : 'no span has it in its name or kind');
    if (found) choose(found.i, found.row, true);
  };

  return html`
    <div class="tools">
      <button onClick=${() => change(now => now.zoom(0.5))} aria-label="zoom in">+</button>
      <button onClick=${() => change(now => now.zoom(2))} aria-label="zoom out">−</button>
      <button onClick=${() => change(now => now.pan(-0.5))} aria-label="earlier">←</button>
      <button onClick=${() => change(now => now.pan(0.5))} aria-label="later">→</button>
      <button onClick=${() => change(now => now.look(0, spans.until))}>all</button>
      <form role="search" onSubmit=${find}><input ref=${words} type="search" placeholder="search spans ( / )" aria-label="search spans"/></form>
      <span id="found" role="status">${said}</span>
    </div>
    <fieldset class="lanes"><legend>lanes</legend>${laneKinds.map(kind => html`
      <label><input type="checkbox" checked=${!hidden[kind]} onChange=${() => setHidden({ ...hidden, [kind]: !hidden[kind] })}/>${short(kind, 30)}</label>`)}
    </fieldset>
    <div class="timeline" ref=${scroller} onScroll=${() => { setTip(null); redraw(); }}>
      <div style=${{ height: `${rows.length * rowHeight + axisHeight}px` }}>
        <canvas id="timeline" ref=${canvas} tabindex="0" role="application" aria-describedby="timeline-keys"
          aria-label="Timeline of all ranks" onKeyDown=${key} onPointerDown=${down} onPointerMove=${move} onPointerUp=${up}
          onPointerLeave=${() => setTip(null)} onDblClick=${() => chosen.i >= 0 && change(now => {
            const wide = spans.end[chosen.i] - spans.start[chosen.i];
            now.look(spans.start[chosen.i] - wide, spans.end[chosen.i] + wide);
          })}></canvas>
      </div>
      ${tip && html`<div class="tip" style=${{ left: `${Math.min(tip.x + 12, line.current.width - 260)}px`,
        top: `${tip.y + scroller.current.scrollTop + 14}px` }}>
        <b>${short(head.names[spans.name[tip.i]])}</b>${factsOf(spans, head, tip.i, tip.row).map(([name, text]) => html`<div>${name}: ${text}</div>`)}</div>`}
    </div>
    <p class="note"><output id="window">${window_}</output>. <span id="timeline-keys">Drag or arrow keys move; + and − or ctrl and the wheel
      zoom; Home shows all; a click chooses a span, with lines from what it waits for and to what waits for it, shift and arrow keys its neighbours; / searches. Where a pixel holds many spans, its
      colour is of the kind that fills most of it, and its height is the busy share.${Object.keys(pieces).length > 0 ? ' A red line is the critical path.' : ''}</span></p>
    <ul class="legend">${head.kinds.map(kind => html`<li><${Swatch} look=${lookOf(kind)}/>${short(kind, 40)}</li>`)}</ul>
    <div id="chosen" aria-live="polite">${chosen.i >= 0 && html`<h3>${short(head.names[spans.name[chosen.i]])}</h3>
      <dl class="facts">${factsOf(spans, head, chosen.i, chosen.row).map(([name, text]) => html`<${Fact} name=${name} text=${text}/>`)}</dl>
      <${Others} id="before" name="It waits for" others=${awaits.before} spans=${spans} head=${head} choose=${choose}/>
      <${Others} id="behind" name="For it wait" others=${awaits.behind} spans=${spans} head=${head} choose=${choose}/>`}
    </div>`;
}
