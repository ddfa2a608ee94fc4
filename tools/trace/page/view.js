// The drawing: rows of a lane are looked up by binary search and what lies within one pixel is drawn once, so that a
// picture costs what its pixels cost, not what the run's events do.
const canvas = document.getElementById('canvas'), overview = document.getElementById('overview');
let NAMES = 250; // where time begins
const AXIS = 24, BAR = 13, HEAD = 26, THIN = 5;
const size = { w: 1000, h: 600 }; // of the canvas; asking the browser each time takes most of a picture's time
function measure() {
  size.w = canvas.clientWidth;
  size.h = canvas.clientHeight;
  NAMES = size.w < 560 ? 90 : 250;
}
const view = {
  from: 0, to: 1, top: 0, focus: 0, block: -1, detail: null, op: null, path: null, hits: null, hit: -1,
  hidden: new Set(), comm: -1, rank: -1, folded: new Set(), thin: new Set(), strips: [], height: 0,
};
const FUNCTIONS = ['AllReduce', 'AllGather', 'ReduceScatter', 'Broadcast', 'Reduce', 'AlltoAll', 'Send', 'Recv', 'Gather', 'Scatter'];
const functionColours = ['#2f7fd6', '#2a9d63', '#12999b', '#8a63d2', '#a8703a', '#d6568f', '#e07b28', '#c79a12', '#6f9c1f', '#5873b8'];
const typeColours = {
  GroupApi: '#7c8794', CollApi: '#4f8fd0', P2pApi: '#d98a3d', KernelLaunch: '#d1b11a', Group: '#9aa4ae', Coll: '#2f7fd6', P2p: '#e07b28',
  KernelCh: '#2aa198', KernelPhase: '#70c1b3', ProxyOp: '#a463c9', ProxyStep: '#c58fe0', ProxyCtrl: '#cf4b4b', NetPlugin: '#d6568f',
  CeColl: '#5f9e2f', CeSync: '#8dbb5f', CeBatch: '#b5d38f',
};
function functionColour(name) { return functionColours[Math.max(0, FUNCTIONS.indexOf(name))]; }
const colourOfType = facts.types.map(name => typeColours[name] || '#888888');
const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['back', 'panel', 'text', 'soft', 'line', 'accent', 'warn']) colours[name] = style.getPropertyValue(`--${name}`).trim();
}

// ---- what is where ----

function layOut() {
  let y = 0;
  view.strips = [];
  const add = (strip, h) => { view.strips.push(Object.assign(strip, { y, h })); y += h; };
  for (const group of groups) {
    if (view.rank >= 0 && group.index !== view.rank) continue;
    group.strip = { group, lane: null };
    add(group.strip, HEAD);
    if (view.folded.has(group)) continue;
    for (const lane of group.lanes) {
      lane.shown = lane.rows.filter(row => rowShown(row));
      if (lane.shown.length) add({ group, lane }, view.thin.has(lane) ? 2 * THIN : lane.shown.length * BAR + 5);
    }
  }
  view.height = y;
  canvas.parentElement.style.setProperty('--need', `${y + AXIS + 80}px`); // where the panel stands below
  view.focus = Math.max(0, Math.min(view.focus, view.strips.length - 1));
  scrollTo(view.top);
}
function kindShown(kind) {
  return !view.hidden.has(kind[KIND.type]) && (view.comm < 0 || kind[KIND.comm] < 0 || kind[KIND.comm] === view.comm);
}
let shownKinds = [];
function filterKinds() { shownKinds = facts.kinds.map(kindShown); }
function rowShown(row) {
  if (view.comm < 0 && !view.hidden.size) return true;
  for (let b = row.first; b < row.last; b++) if (shownKinds[blocks.kind[b]]) return true;
  return false;
}
function width() { return size.w - NAMES; }
function xOf(at) { return NAMES + (at - view.from) / (view.to - view.from) * width(); }
function timeAt(x) { return view.from + (x - NAMES) / width() * (view.to - view.from); }
function scrollTo(top) { view.top = Math.max(0, Math.min(top, view.height + AXIS - size.h)); }
function stripAt(y) { return view.strips.findIndex(strip => y >= strip.y - view.top + AXIS && y < strip.y + strip.h - view.top + AXIS); }

function show(from, to) {
  const whole = facts.end_nsec || 1, length = Math.min(Math.max(to - from, 20), whole * 1.04);
  const middle = (from + to) / 2;
  view.from = Math.max(-whole * 0.02, Math.min(middle - length / 2, whole * 1.02 - length));
  view.to = view.from + length;
  draw();
}
function zoom(factor, at) { show(at - (at - view.from) * factor, at + (view.to - at) * factor); }

// ---- drawing ----

let waiting = false;
function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; drawNow(); });
}

function prepare(element) {
  const ratio = window.devicePixelRatio || 1, w = Math.round(element.clientWidth * ratio), h = Math.round(element.clientHeight * ratio);
  if (element.width !== w) element.width = w;
  if (element.height !== h) element.height = h;
  const g = element.getContext('2d');
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.fillStyle = colours.back;
  g.fillRect(0, 0, element.clientWidth, element.clientHeight);
  g.font = '12px system-ui, sans-serif';
  g.textBaseline = 'middle';
  return g;
}

// Calls put(index, x, width) for what is seen of a sorted list, once for each pixel.
function eachSeen(first, last, start, end, put) {
  const right = size.w;
  let k = firstOf(first, last, i => end(i) >= view.from);
  while (k < last && start(k) <= view.to) {
    const x = Math.max(NAMES, xOf(start(k))), stop = Math.min(right, xOf(end(k)));
    const done = put(k, x, Math.max(1, stop - x));
    k++;
    if (done === false || stop - x >= 1) continue;
    const next = timeAt(x + 1);
    if (k < last && start(k) < next) k = firstOf(k, last, i => end(i) >= next);
  }
}

const CONTROL = facts.types.indexOf('ProxyCtrl');
function asleep(b) { return typeOf(b) === CONTROL && proxyDoes(b) === 'asleep'; }
function drawRow(g, row, y, h) {
  eachSeen(row.first, row.last, b => blocks.start[b], b => blocks.end[b], (b, x, w) => {
    const kind = blocks.kind[b];
    if (!shownKinds[kind]) return false;
    const details = blocks.joined[b] < w * 4 ? detailsOf(b) : null; // a few for each pixel at most
    if (details) return drawDetails(g, details, y, h);
    g.fillStyle = colourOfType[facts.kinds[kind][KIND.type]];
    g.globalAlpha = blocks.joined[b] > 1 ? 0.6 : asleep(b) ? 0.45 : 1;
    g.fillRect(x, y, w > 3 ? w - 0.5 : w, h);
    g.globalAlpha = 1;
    if (facts.kinds[kind][KIND.open] && w > 6) drawOpen(g, x + w, y, h);
    if (w > 40 && h > 10) text(g, nameOf(b), x + 3, y + h / 2 + 0.5, w - 6, '#ffffff');
    return true;
  });
  if (view.hits) drawHits(g, row, y, h);
}
// What a joined block is made of, where it is wide enough to be told apart.
function drawDetails(g, found, y, h) {
  eachSeen(found.first, found.last, d => found.start[d], d => found.end[d], (d, x, w) => {
    const kind = facts.kinds[found.kind[d]];
    g.fillStyle = colourOfType[kind[KIND.type]];
    g.fillRect(x, y, w > 3 ? w - 0.5 : w, h);
    if (w > 40 && h > 10) text(g, kindName(kind, found.number[d]), x + 3, y + h / 2 + 0.5, w - 6, '#ffffff');
    return true;
  });
  return true;
}
// An event whose end the files do not have: it fades.
function drawOpen(g, x, y, h) {
  g.fillStyle = colours.warn;
  for (let k = 0; k < h; k += 4) g.fillRect(x - 4, y + k, 4, 2);
}
function drawHits(g, row, y, h) {
  const hits = view.hits, first = firstOf(0, hits.length, i => hits[i] >= row.first), last = firstOf(first, hits.length, i => hits[i] >= row.last);
  g.strokeStyle = colours.text;
  g.lineWidth = 1.5;
  eachSeen(first, last, i => blocks.start[hits[i]], i => blocks.end[hits[i]], (i, x, w) => { g.strokeRect(x, y + 0.5, Math.max(2, w), h - 1); });
}

function text(g, what, x, y, room, colour) {
  g.fillStyle = colour;
  let shown = what;
  if (g.measureText(shown).width > room) {
    const fits = Math.floor(shown.length * room / g.measureText(shown).width) - 1;
    if (fits < 3) return;
    shown = `${shown.slice(0, fits)}…`;
  }
  g.fillText(shown, x, y);
}

let hatch = null;
function hatched(g) {
  if (hatch) return hatch;
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const t = tile.getContext('2d');
  t.strokeStyle = colours.back;
  t.lineWidth = 2;
  for (const d of [-6, 0, 6]) { t.beginPath(); t.moveTo(d, 6); t.lineTo(d + 6, 0); t.stroke(); }
  hatch = g.createPattern(tile, 'repeat');
  return hatch;
}

function opShown(op) { return view.comm < 0 || op.comm === view.comm; }
function drawParts(g, group, y) {
  const list = group.parts, h = HEAD - 8;
  eachSeen(0, list.length, k => list[k].begin, k => list[k].end, (k, x, w) => {
    const part = list[k], op = part.op;
    if (!opShown(op)) return false;
    g.fillStyle = functionColour(part.func);
    g.fillRect(x, y + 4, w > 3 ? w - 0.5 : w, h);
    const until = Math.min(x + w, xOf(part.waits));
    if (until - x >= 2) {
      g.fillStyle = hatched(g);
      g.fillRect(x, y + 4, until - x, h);
    }
    if (part.open && w > 6) drawOpen(g, x + w, y + 4, h);
    if (op === view.op) { g.strokeStyle = colours.text; g.lineWidth = 2; g.strokeRect(x, y + 4, w, h); }
    const inner = Math.max(x, until);
    if (absentOf(op).length && w > 90) {
      const label = `${part.func} #${op.seq} waits for ${groupNames(absentOf(op))}`, room = Math.min(w - 8, g.measureText(label).width + 8);
      g.fillStyle = functionColour(part.func);
      g.fillRect(x + 2, y + 6, room, h - 4);
      text(g, label, x + 6, y + HEAD / 2 + 0.5, room - 6, '#ffffff');
    } else if (x + w - inner > 50) text(g, `${part.func} #${op.seq}`, inner + 4, y + HEAD / 2 + 0.5, x + w - inner - 8, '#ffffff');
    return true;
  });
}

// What a rank never began, while others waited for it: a box without anything in it.
function drawAbsent(g, group, y) {
  for (const op of group.absent || []) {
    const x = Math.max(NAMES, xOf(op.begin)), w = Math.min(size.w, xOf(op.end)) - x;
    if (w < 3 || !opShown(op)) continue;
    g.strokeStyle = colours.warn;
    g.lineWidth = op === view.op ? 3 : 2;
    g.setLineDash([5, 4]);
    g.strokeRect(x + 1, y + 5, w - 2, HEAD - 10);
    g.setLineDash([]);
    text(g, `never begins ${op.func} #${op.seq}`, x + 6, y + HEAD / 2 + 0.5, w - 12, colours.warn);
  }
}

function pointOf(part, at) { return part.group.strip && view.strips.includes(part.group.strip) ? [xOf(at), part.group.strip.y - view.top + AXIS + HEAD / 2] : null; }
function drawArrow(g, op, strong) {
  const points = op.order.map((part, k) => pointOf(part, op.message && k === 1 ? part.end : part.begin)).filter(Boolean);
  if (points.length < 2) return;
  g.strokeStyle = g.fillStyle = strong ? colours.text : colours.soft;
  g.globalAlpha = strong ? 1 : 0.75;
  g.lineWidth = strong ? 2 : 1;
  g.beginPath();
  points.forEach(([x, y], k) => { if (k) g.lineTo(x, y); else g.moveTo(x, y); });
  g.stroke();
  const [fx, fy] = points[points.length - 2], [x, y] = points[points.length - 1], angle = Math.atan2(y - fy, x - fx);
  g.beginPath();
  for (const turn of [0, 2.6, -2.6]) {
    const r = turn ? 9 : 0;
    g.lineTo(x + r * Math.cos(angle + turn), y + r * Math.sin(angle + turn));
  }
  g.fill();
  g.globalAlpha = 1;
}
function drawArrows(g) {
  const seen = [], most = 60;
  const last = firstOf(0, operations.length, k => operations[k].begin > view.to);
  const wide = (view.to - view.from) / width() * 12; // shorter than 12 pixels: no arrow
  for (let k = 0; k < last && seen.length <= most; k++) {
    const op = operations[k];
    if (!op.queued && op.end >= view.from && op.end - op.begin > wide && op.parts.length > 1 && opShown(op)) seen.push(op);
  }
  if (seen.length <= most) for (const op of seen) if (op !== view.op) drawArrow(g, op, false);
  if (view.op) drawArrow(g, view.op, true);
}
function drawPath(g) {
  if (!view.path) return;
  g.strokeStyle = '#e11d48';
  g.lineWidth = 4;
  g.lineJoin = 'round';
  g.beginPath();
  for (const step of view.path.steps) {
    for (const at of [step.from, step.to]) {
      const point = pointOf({ group: step.group }, at);
      if (point) g.lineTo(point[0], point[1] + 9);
    }
  }
  g.stroke();
}

function drawAxis(g) {
  const span = view.to - view.from, rough = span / (width() / 110), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(k => k * power).find(k => k >= rough);
  g.fillStyle = colours.panel;
  g.fillRect(0, 0, size.w, AXIS);
  for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
    const x = xOf(k * step);
    if (x < NAMES) continue;
    g.fillStyle = colours.line;
    g.fillRect(x, AXIS - 6, 1, size.h);
    const label = axisText(k * step, step);
    if (x + 4 + g.measureText(label).width < size.w) text(g, label, x + 4, AXIS / 2, 105, colours.soft);
  }
}
function axisText(at, step) {
  const [scale, unit] = Math.abs(at) >= 1e9 || step >= 1e8 ? [1e9, 's'] : Math.abs(at) >= 1e6 || step >= 1e5 ? [1e6, 'ms'] : [1e3, 'us'];
  return `${(at / scale).toFixed(Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / scale)))))} ${unit}`;
}

function drawName(g, strip, y) {
  g.fillStyle = strip === view.strips[view.focus] && document.activeElement === canvas ? colours.line : strip.lane ? colours.back : colours.panel;
  g.fillRect(0, y, NAMES - 1, strip.h);
  if (strip.lane) {
    g.font = '11px system-ui, sans-serif';
    if (strip.h >= 12) text(g, strip.lane.name, 22, y + strip.h / 2, NAMES - 28, colours.soft);
    g.font = '12px system-ui, sans-serif';
    return;
  }
  g.font = 'bold 12px system-ui, sans-serif';
  text(g, `${view.folded.has(strip.group) ? '▸' : '▾'} ${groupName(strip.group)}`, 6, y + strip.h / 2, 100, colours.text);
  g.font = '12px system-ui, sans-serif';
  if (NAMES > 100) text(g, `${strip.group.host}, pid ${strip.group.pid}`, 90, y + strip.h / 2, NAMES - 96, colours.soft);
}

// Ranks of one host mostly stand together: a line tells where another host begins.
function isFirstOfHost(strip) { return !strip.lane && strip.group.index > 0 && groups[strip.group.index - 1].host !== strip.group.host; }
function drawNow() {
  const g = prepare(canvas);
  drawAxis(g);
  g.save();
  g.beginPath();
  g.rect(0, AXIS, size.w, size.h - AXIS);
  g.clip();
  for (const strip of view.strips) {
    const y = strip.y - view.top + AXIS;
    if (y + strip.h < AXIS || y > size.h) continue;
    g.fillStyle = colours.panel;
    if (!strip.lane) g.fillRect(NAMES, y + strip.h - 1, size.w, 1);
    if (!strip.lane) drawAbsent(g, strip.group, y);
    if (!strip.lane) drawParts(g, strip.group, y);
    else if (view.thin.has(strip.lane)) drawRow(g, strip.lane.shown[0], y + 2, THIN);
    else strip.lane.shown.forEach((row, k) => drawRow(g, row, y + 2 + k * BAR, BAR - 1));
    drawSelection(g, strip, y);
  }
  drawArrows(g);
  drawPath(g);
  if (!view.strips.some(strip => strip.lane)) {
    text(g, 'A click on a rank’s name, or Enter, unfolds it: its calls, launches, kernels and proxy.', NAMES + 12, view.height - view.top + AXIS + 20,
      width(), colours.soft);
  }
  for (const strip of view.strips) {
    const y = strip.y - view.top + AXIS;
    if (y + strip.h < AXIS || y > size.h) continue;
    drawName(g, strip, y);
    if (!isFirstOfHost(strip)) continue;
    g.fillStyle = colours.soft;
    g.fillRect(0, y - 1, size.w, 2);
  }
  g.fillStyle = colours.line;
  g.fillRect(NAMES - 1, AXIS, 1, size.h);
  g.restore();
  drawOverview();
}
function drawSelection(g, strip, y) {
  if (view.block < 0 || !strip.lane) return;
  const row = strip.lane.shown.findIndex(r => view.block >= r.first && view.block < r.last);
  if (row < 0) return;
  const x = Math.max(NAMES, xOf(blocks.start[view.block])), end = xOf(blocks.end[view.block]);
  if (end < NAMES) return;
  g.strokeStyle = colours.text;
  g.lineWidth = 2;
  g.strokeRect(x - 1, y + 1 + (view.thin.has(strip.lane) ? 0 : row * BAR), Math.max(3, end - x + 2), BAR + 1);
}

// How many ranks are in an operation at each moment of the run, and where the window is.
let busy = null;
function busyness(columns) {
  if (busy && busy.length === columns) return busy;
  busy = new Float64Array(columns);
  const per = columns / (facts.end_nsec || 1), change = new Float64Array(columns + 1);
  for (const part of parts) {
    if (part.op.queued) continue;
    const from = Math.max(0, part.begin * per), to = Math.min(columns - 1e-6, part.end * per);
    if (Math.floor(from) === Math.floor(to)) { busy[Math.floor(from)] += Math.max(0, to - from); continue; }
    busy[Math.floor(from)] += Math.ceil(from) - from;
    busy[Math.floor(to)] += to - Math.floor(to);
    change[Math.ceil(from)]++;
    change[Math.floor(to)]--;
  }
  for (let k = 0, level = 0; k < columns; k++) busy[k] = Math.min(1, (busy[k] + (level += change[k])) / groups.length);
  return busy;
}
function drawOverview() {
  const g = prepare(overview), w = overview.clientWidth - NAMES, h = overview.clientHeight, whole = facts.end_nsec || 1;
  if (w < 10) return;
  text(g, 'ranks inside operations', 6, h / 2, NAMES - 12, colours.soft);
  text(g, `${time(firstBegin)} before the first operation`, NAMES + 6, h / 2, firstBegin / whole * w - 12, colours.soft);
  g.fillStyle = functionColours[0];
  busyness(Math.floor(w)).forEach((share, k) => g.fillRect(NAMES + k, h - share * (h - 4), 1, share * (h - 4)));
  const x = NAMES + Math.max(0, view.from / whole) * w, end = NAMES + Math.min(1, view.to / whole) * w;
  g.fillStyle = colours.text;
  g.globalAlpha = 0.12;
  g.fillRect(NAMES, 0, x - NAMES, h);
  g.fillRect(end, 0, NAMES + w - end, h);
  g.globalAlpha = 1;
  g.strokeStyle = colours.accent;
  g.lineWidth = 2;
  g.strokeRect(x + 1, 1, Math.max(2, end - x - 2), h - 2);
}

// What lies below a point: {group, part} or {lane, block}.
function under(x, y) {
  const strip = view.strips[stripAt(y)];
  if (!strip || x < NAMES || y < AXIS) return null;
  const at = timeAt(x), slack = (view.to - view.from) / width() * 2;
  if (!strip.lane) {
    const part = strip.group.parts.find(p => p.begin <= at + slack && p.end >= at - slack && opShown(p.op));
    const missing = part ? null : (strip.group.absent || []).find(op => op.begin <= at && op.end >= at && opShown(op));
    return part ? { part } : missing ? { missing, group: strip.group } : null;
  }
  const index = view.thin.has(strip.lane) ? 0 : Math.floor((y - AXIS + view.top - strip.y - 2) / BAR), row = strip.lane.shown[index];
  if (!row) return null;
  for (let b = firstOf(row.first, row.last, i => blocks.end[i] >= at - slack); b < row.last && blocks.start[b] <= at + slack; b++)
    if (shownKinds[blocks.kind[b]]) return { block: b, detail: detailAt(b, at, slack) };
  return null;
}
