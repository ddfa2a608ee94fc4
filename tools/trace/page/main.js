// Mouse, keyboard, buttons; and the start.
function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  hatch = null;
  readColours();
  draw();
}
function toggleHelp() {
  byId('help').hidden = !byId('help').hidden;
  byId('helper').setAttribute('aria-expanded', String(!byId('help').hidden));
}
function toggleFold(strip) {
  const [set, key] = strip.lane ? [view.thin, strip.lane] : [view.folded, strip.group];
  if (!set.delete(key)) set.add(key);
  layOut();
  draw();
}
function fitRun() { show(-facts.end_nsec * 0.02, facts.end_nsec * 1.02); }
// From the first operation on: what stands before it, processes that start and connect, is often most of a run.
function fitOperations() {
  if (!firstBegin) return fitRun();
  const room = (facts.end_nsec - firstBegin) * 0.03;
  return show(firstBegin - room, facts.end_nsec + room);
}

// ---- search ----

function search() {
  view.hits = find(byId('search').value);
  view.hit = -1;
  put('hits', view.hits ? many(view.hits.length, 'hit') : '');
  draw();
}
function goToHit(by) {
  if (!view.hits || !view.hits.length) return;
  view.hit = (view.hit + by + view.hits.length + (view.hit < 0 && by < 0 ? 1 : 0)) % view.hits.length;
  put('hits', `${view.hit + 1} of ${many(view.hits.length, 'hit')}`);
  selectBlock(view.hits[view.hit], true);
}

// ---- keyboard ----

// The previous or next event of the lane in focus, or operation of the rank.
function step(by) {
  const strip = view.strips[view.focus];
  if (!strip) return;
  const at = view.from + (view.to - view.from) / 2;
  if (!strip.lane) {
    const list = strip.group.parts.filter(part => opShown(part.op));
    let k = list.findIndex(part => part.op === view.op);
    k = k >= 0 ? k + by : firstOf(0, list.length, i => list[i].begin >= view.from);
    if (list.length) selectOperation(list[Math.max(0, Math.min(k, list.length - 1))].op);
    return keepSeen(view.op ? view.op.begin : at);
  }
  const row = strip.lane.shown.find(r => view.block >= r.first && view.block < r.last) || strip.lane.shown[0];
  let b = view.block >= row.first && view.block < row.last ? view.block + by : firstOf(row.first, row.last, i => blocks.end[i] >= view.from);
  while (b > row.first && b < row.last - 1 && !shownKinds[blocks.kind[b]]) b += by;
  selectBlock(Math.max(row.first, Math.min(b, row.last - 1)));
  return keepSeen(blocks.start[view.block]);
}
function keepSeen(at) {
  const length = view.to - view.from;
  if (at < view.from || at > view.to) show(at - length / 2, at + length / 2);
}
function zoomToSelection() {
  if (view.block >= 0) zoomTo(blocks.start[view.block], blocks.end[view.block]);
  else if (view.op) zoomTo(view.op.begin, view.op.end);
}
const middle = () => (view.from + view.to) / 2, move = share => show(view.from + (view.to - view.from) * share, view.to + (view.to - view.from) * share);
function focusStrip(by) {
  view.focus = Math.max(0, Math.min(view.focus + by, view.strips.length - 1));
  reveal(view.strips[view.focus]);
  draw();
}
const keys = {
  '+': () => zoom(0.6, middle()), '=': () => zoom(0.6, middle()), '-': () => zoom(1 / 0.6, middle()),
  ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15), ArrowUp: () => focusStrip(-1), ArrowDown: () => focusStrip(1),
  PageUp: () => focusStrip(-10), PageDown: () => focusStrip(10), Home: fitRun, o: fitOperations, '[': () => step(-1), ']': () => step(1),
  Enter: () => toggleFold(view.strips[view.focus]), ' ': () => toggleFold(view.strips[view.focus]),
  z: zoomToSelection, n: () => goToHit(1), N: () => goToHit(-1), Escape: selectNothing,
};
const everywhere = { '/': () => byId('search').focus(), '?': toggleHelp, t: () => setTheme(document.documentElement.dataset.theme !== 'dark') };
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches('input[type=search], select');
  const run = (event.target === canvas && keys[event.key]) || (!typing && everywhere[event.key]);
  if (!run) return;
  event.preventDefault();
  run();
}

// ---- mouse ----

function tipOf({ part, detail, block, missing, group }) {
  if (missing) return `${groupName(group)} never begins ${missing.func} #${missing.seq}`;
  if (detail) return `${detailName(detail)}: ${time(detail.end - detail.start)}`;
  const data = dataOf(part ? part.block : block), what = data ? `; ${data}` : '';
  if (!part) return `${nameOf(block)}: ${time(blocks.end[block] - blocks.start[block])}${what}`;
  const absent = absentOf(part.op);
  if (absent.length && part.waits === part.end) return `${opName(part.op)} at ${groupName(part.group)}: waits ${time(part.end - part.begin)} for ${groupNames(absent)}${what}`;
  return `${opName(part.op)} at ${groupName(part.group)}: waits ${time(part.waits - part.begin)}, moves ${time(part.end - part.waits)}${what}`;
}
let drag = null;
function onDown(event) {
  canvas.setPointerCapture(event.pointerId);
  drag = { x: event.offsetX, y: event.offsetY, from: view.from, to: view.to, top: view.top, moved: false };
}
function onMove(event) {
  if (drag) {
    const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
    drag.moved = drag.moved || Math.abs(dx) + Math.abs(dy) > 4;
    if (!drag.moved) return;
    const by = dx / width() * (drag.to - drag.from);
    scrollTo(drag.top - dy);
    show(drag.from - by, drag.to - by);
    return;
  }
  const found = under(event.offsetX, event.offsetY), tip = byId('tip');
  tip.hidden = !found;
  if (!found) return;
  put('tip', tipOf(found));
  tip.style.left = `${Math.min(event.offsetX + 12, size.w - 260)}px`;
  tip.style.top = `${event.offsetY + overview.offsetHeight + 14}px`;
}
function onUp(event) {
  const moved = drag && drag.moved;
  drag = null;
  if (moved) return;
  const index = stripAt(event.offsetY), found = under(event.offsetX, event.offsetY);
  if (index >= 0) view.focus = index;
  if (event.offsetX < NAMES && index >= 0 && event.offsetY > AXIS) toggleFold(view.strips[index]);
  else if (found && (found.part || found.missing)) selectOperation(found.missing || found.part.op);
  else if (found) selectBlock(found.block, false, found.detail);
  else selectNothing();
}
function onWheel(event) {
  event.preventDefault();
  if (event.offsetX < NAMES || event.shiftKey) scrollTo(view.top + event.deltaY);
  else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(event.deltaX / width());
  else zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) * 0.002), timeAt(event.offsetX));
  draw();
}
function onOverview(event) {
  if (event.type === 'pointermove' && !event.buttons) return;
  const at = (event.offsetX - NAMES) / (overview.clientWidth - NAMES) * facts.end_nsec, half = (view.to - view.from) / 2;
  show(at - half, at + half);
}

// ---- start ----

function listen() {
  canvas.addEventListener('pointerdown', onDown);
  canvas.addEventListener('pointermove', onMove);
  canvas.addEventListener('pointerup', onUp);
  canvas.addEventListener('pointerleave', () => { byId('tip').hidden = true; });
  canvas.addEventListener('wheel', onWheel, { passive: false });
  canvas.addEventListener('dblclick', zoomToSelection);
  for (const name of ['focus', 'blur']) canvas.addEventListener(name, draw);
  for (const name of ['pointerdown', 'pointermove']) overview.addEventListener(name, onOverview);
  document.addEventListener('keydown', onKey);
  byId('search').addEventListener('input', search);
  byId('search').addEventListener('keydown', event => {
    if (event.key === 'Enter') goToHit(event.shiftKey ? -1 : 1);
    if (event.key === 'Escape') canvas.focus();
  });
  const click = { before: () => goToHit(-1), after: () => goToHit(1), fit: fitRun, work: fitOperations, helper: toggleHelp, theme: everywhere.t,
    fold: () => foldAll(groups), unfold: () => foldAll([]) };
  for (const [id, run] of Object.entries(click)) byId(id).addEventListener('click', run);
  byId('comm').addEventListener('change', event => { view.comm = Number(event.target.value); changeFilter(); });
  byId('rank').addEventListener('change', event => { view.rank = Number(event.target.value); changeFilter(); });
  new ResizeObserver(() => { measure(); scrollTo(view.top); draw(); }).observe(canvas);
  const dark = matchMedia('(prefers-color-scheme: dark)');
  dark.addEventListener('change', () => setTheme(dark.matches));
  setTheme(dark.matches);
}
function foldAll(which) {
  view.folded = new Set(which);
  layOut();
  draw();
}

readAll();
measure();
filterKinds();
view.folded = new Set(groups.length > 2 ? groups : []);
layOut();
showHead();
showLegend();
showTables();
showOperation();
listen();
fitOperations();
