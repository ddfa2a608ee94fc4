// What stands beside the drawing. Text of the trace enters as text nodes only.
function byId(id) { return document.getElementById(id); }
function element(name, content = [], properties = {}) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...[].concat(content));
  return made;
}
function tableOf(heads, lines) {
  const row = (cell, cells) => element('tr', cells.map(content => element(cell, content instanceof Node ? content : String(content))));
  return element('div', element('table', [element('thead', row('th', heads)), element('tbody', lines.map(cells => row('td', cells)))]), { className: 'scroll' });
}
function link(label, run) { return element('button', label, { onclick: run }); }
function put(id, ...content) { byId(id).replaceChildren(...content.flat()); }

// ---- selecting ----

function zoomTo(from, to) {
  const room = Math.max((to - from) * 0.4, 200);
  show(from - room, to + room);
}
// A call lasts nanoseconds: alone it would fill the drawing, and nothing would say where that is.
function showAround(block, part) {
  const start = blocks.start[block], end = blocks.end[block];
  const room = part ? Math.max(0, (part.op.end - part.op.begin) / 50 - (end - start)) / 2 : 0;
  zoomTo(start - room, end + room);
}
function reveal(strip) {
  if (!strip) return;
  view.focus = view.strips.indexOf(strip);
  const high = size.h - AXIS;
  if (strip.y < view.top) scrollTo(strip.y);
  if (strip.y + strip.h > view.top + high) scrollTo(strip.y + strip.h - high);
}
function selectOperation(op, look = false) {
  view.op = op;
  view.block = -1;
  showOperation();
  if (look) {
    reveal((absentOf(op)[0] || op.late.group).strip);
    zoomTo(view.path.steps.length ? Math.max(view.path.steps[0].from, op.begin - (op.end - op.begin)) : op.begin, op.end);
  }
  draw();
}
function selectBlock(block, look = false, detail = null) {
  const part = operationOf(block), lane = rowOf(block).lane;
  view.block = block;
  view.detail = detail;
  view.op = part ? part.op : null;
  if (look) {
    if (view.folded.delete(lane.group)) layOut();
    reveal(view.strips.find(strip => strip.lane === lane));
    showAround(block, part);
  }
  showOperation();
  draw();
}
function selectNothing() {
  view.op = view.path = null;
  view.block = -1;
  showOperation();
  draw();
}

function blockFacts(b) {
  const kind = kindOf(b), type = facts.types[kind[KIND.type]], lane = rowOf(b).lane, lines = [['type', type], ['where', `${groupName(lane.group)} on ${lane.group.host}, ${lane.name}`]];
  const length = blocks.end[b] - blocks.start[b];
  lines.push(['begins', time(blocks.start[b])], ['lasts', kind[KIND.open] ? `${time(length)}: no end in the files` : time(length)]);
  if (blocks.joined[b] > 1) {
    lines.push(['joined', `${blocks.joined[b].toLocaleString('en')} short events that lie close to each other${facts.detailed ? '; zoom in to see each' : ''}`]);
    return view.detail ? detailFacts(view.detail, lines[1]) : lines;
  }
  if (kind[KIND.comm] >= 0) lines.push(['communicator', commName(kind[KIND.comm])]);
  if (kind[KIND.datatype]) lines.push(['data', dataOf(b)]);
  if (type === 'Coll' || type === 'P2p') {
    if (type === 'Coll') lines.push(['sequence number', blocks.number[b]]);
    if (kind[KIND.algo]) lines.push(['algorithm', `${word(kind[KIND.algo])}, ${word(kind[KIND.proto])}, ${many(kind[KIND.channels], 'channel')}`]);
  }
  if (type === 'ProxyOp') lines.push(['steps', `${blocks.number[b]} of chunks of ${amount(blocks.count[b])}`]);
  if (blocks.peer[b] >= 0) lines.push([type === 'P2p' || type === 'ProxyOp' ? 'peer' : 'root', `rank ${blocks.peer[b]}`]);
  if (blocks.parent[b] >= 0) lines.push(['parent', link(nameOf(blocks.parent[b]), () => selectBlock(blocks.parent[b], true))]);
  return lines;
}
// One event of a joined block: the page has no parent and no states of it.
function detailFacts(detail, where) {
  const type = facts.types[detail.kind[KIND.type]], lines = [['type', type], where, ['begins', time(detail.start)], ['lasts', time(detail.end - detail.start)]];
  if (type === 'Coll') lines.push(['sequence number', detail.number]);
  if (type === 'ProxyStep') lines.push(['step', detail.number]);
  if (detail.peer >= 0) lines.push([type === 'P2p' || type === 'ProxyOp' ? 'peer' : 'root', `rank ${detail.peer}`]);
  return lines;
}
// What the event was in, and for how long: up to the next state, or its end.
function stateFacts(b) {
  const lines = [];
  for (let s = blocks.states[b]; s < blocks.states[b + 1] && lines.length < 64; s++) {
    const until = s + 1 < blocks.states[b + 1] ? states.at[s + 1] : blocks.end[b];
    lines.push([word(states.name[s]), time(states.at[s] - blocks.start[b]), time(Math.max(until - states.at[s], 0)), states.value[s] ? states.value[s].toLocaleString('en') : '']);
  }
  if (!lines.length) return [];
  const rest = blocks.states[b + 1] - blocks.states[b] - lines.length;
  return [tableOf(['state', 'after', 'lasts', 'value'], lines), ...(rest > 0 ? [element('p', `and ${many(rest, 'more state')}`)] : [])];
}
function operationFacts(op) {
  const [send, receive] = op.message ? op.parts : [];
  const head = `${op.func} #${op.seq}, ${commName(op.comm)}`;
  const talk = op.message
    ? `${groupName(send.group)}${receive ? ` and ${groupName(receive.group)}` : ''}, ${time(op.end - op.begin)} in all.`
    : absentOf(op).length ? `${time(op.end - op.begin)} in all, in which not all began.`
    : `${time(op.end - op.begin)} in all: ${time(op.lastBegin - op.begin)} until all had begun, ${time(op.end - op.lastBegin)} from there.`;
  const absent = absentOf(op).slice(0, 64).map(group => [groupName(group), 'never', '', '']);
  const lines = op.order.slice(0, 64).map(part => [link(groupName(part.group), () => selectBlock(part.block, true)), time(part.begin - op.begin), time(part.waits - part.begin),
    part.open ? 'no end' : time(part.end - part.waits)]);
  const rest = op.order.length > 64 ? [element('p', `and ${many(op.order.length - 64, 'rank')} that began later`)] : [];
  return [element('p', element('b', head)), element('p', `${talk}${op.whole || op.stop ? '' : ' Not all ranks whose files are here have ended it.'}`),
    ...(op.stop ? [element('p', `It came to no end: ${op.stop.text}.`, { className: 'warn' })] : []),
    tableOf(['', 'begins after', 'waits', 'moves'], [...absent, ...lines]), ...rest];
}
function showOperation() {
  view.path = view.op ? criticalPath(view.op) : null;
  const about = [];
  if (view.block >= 0) about.push(element('p', element('b', view.detail ? detailName(view.detail) : nameOf(view.block))), tableOf(['', ''], blockFacts(view.block)), ...stateFacts(view.block));
  if (view.op) about.push(...operationFacts(view.op));
  put('selected', about.length ? about : [element('p', 'Nothing. Click on an event, or press ] in the drawing.')]);
  if (!view.path) {
    put('path', element('p', 'Select an operation: here stands what it had to wait for, step by step; in the drawing it is the red line.'));
    return;
  }
  const total = view.path.steps.reduce((sum, step) => sum + step.to - step.from, 0) || 1;
  put('path', tableOf(['who and what', 'time', 'share'], view.path.steps.map(step =>
    [`${groupName(step.group)}: ${step.what}`, time(step.to - step.from), `${Math.round((step.to - step.from) / total * 100)} %`])),
  element('p', link('Zoom to it', () => selectOperation(view.path.op, true))));
}

// ---- tables that stay ----

// What came to no end, causes first, and why.
function whereStopped(look) {
  const MOST = 4, stops = facts.stops.map(([index]) => operations[index]), warn = text => element('li', text[0].toUpperCase() + text.slice(1), { className: 'warn' });
  const held = stops.filter(op => !op.stop.queued), queued = stops.filter(op => op.stop.queued);
  const said = [...held.slice(0, MOST), ...queued.slice(0, 1)].map(op => element('li', [op.stop.cause && op.stop.waits ? 'The run stopped in ' : '', look(op), `: ${op.stop.text}.`], { className: 'warn' }));
  const rest = stops.length > said.length ? [element('li', `${many(stops.length - said.length, 'more operation')} came to no end.`)] : [];
  return [...(facts.circle ? [warn(`${facts.circle}:`)] : []), ...said, ...rest, ...facts.waits.slice(0, MOST).map(text => warn(`${text}.`))];
}
// The run in a few sentences: how much waiting there is, for whom, what takes most, and what has not ended.
function inShort() {
  const look = op => link(opName(op), () => selectOperation(op, true)), found = insideOf(), [late] = found.late, said = whereStopped(look);
  if (!found.inside && !said.length) return [element('p', 'No collective of the drawing has two ranks here.')];
  if (!found.inside) return [element('ul', said)];
  const share = part => `${Math.round(part / found.inside * 100)}\u00a0%`;
  const stopped = said.length;
  said.push([`Ranks are inside of collectives for ${time(found.inside)} in all; for ${share(found.waits)} of it they wait for ranks that have not begun.`]);
  if (!late.never && late.most && late.cost * groups.length > found.inside * 0.02) {
    const before = criticalPath(late.most).steps[0];
    said.push([`The others waited ${time(late.cost)} for ${groupName(late.group)}${facts.clocks.length > 1 ? ` on ${late.group.host}` : ''} alone, the longest at `, look(late.most), `: ${time(late.most.lateBy)}`,
      before && before.group === late.group && before.to - before.from > late.most.lateBy / 2 ? `, after ${time(before.to - before.from)} ${before.what}.` : '.']);
  } else if (!stopped) said.push(['No rank stands out: nobody alone made the others wait for long.']);
  const most = facts.table.reduce((a, b) => (b[3] * b[9] > a[3] * a[9] ? b : a), facts.table[0]);
  if (most && most[3]) said.push([`Most time goes to ${most[0]} of ${amount(most[2])}${facts.comms.length > 1 ? ` of ${commLabel(most[1])}` : ''}: ${many(most[3], 'time')}, ${time(most[9] * 1e3)} each while data moves, ${most[10].toFixed(2)} GB/s of bus bandwidth.`]);
  if (found.broken.length) said.push([`${many(found.broken.length, 'operation')} ended at some ranks only, as far as the files go; the first is `, look(found.broken[0]), '.']);
  return [element('ul', said.map(parts => (parts instanceof Node ? parts : element('li', parts))))];
}
function showTables() {
  put('short', inShort());
  const late = stragglers();
  const never = late.some(row => row.never);
  put('stragglers', element('p', `How often a rank was the last to begin a collective, and how long all others had waited for it alone${never ? '; first those that never began one' : ''}.`),
    tableOf(['rank', ...(never ? ['never'] : []), 'last', 'of', 'waited for', 'most'], late.slice(0, 32).map(row => [groupName(row.group), ...(never ? [row.never || ''] : []), row.times, row.of, time(row.cost),
      row.most ? link(opName(row.most), () => selectOperation(row.most, true)) : ''])));
  put('worst', element('p', 'By skew: from when the first rank began to when the last one did; from there data moves.'), tableOf(['operation', 'last rank', 'skew', 'moves'], worstOperations().map(op =>
    [link(opName(op), () => selectOperation(op, true)), absentOf(op).length ? `${groupNames(absentOf(op))}: never` : groupName(op.late.group), time(skewOf(op)),
      absentOf(op).length ? 'nothing' : time(op.end - op.lastBegin)])));
  const several = facts.comms.length > 1, inRank = (comm, rank) => {
    const op = operations.find(o => o.comm === comm && !o.message && o.parts.length === facts.comms[comm][2]);
    return op && op.parts[rank] ? groupName(op.parts[rank].group) : `rank ${rank}`;
  };
  const ofComm = (func, comm) => several ? element('span', [func, element('small', commLabel(comm))]) : func;
  put('table', tableOf(['function', 'bytes', 'times', 'p50', 'p99', 'skew', 'GB/s', 'last'], facts.table.map(
    ([func, comm, bytes, times, , p50, p99, skew, , , busbw, slowest, share]) => times ? [ofComm(func, comm), amount(bytes), times, time(p50 * 1e3), time(p99 * 1e3),
      time(skew * 1e3), busbw.toFixed(2), slowest < 0 ? '' : `${inRank(comm, slowest)} (${Math.round(share * 100)} %)`] : [ofComm(func, comm), amount(bytes), 0, 'no end', '', '', '', ''])),
  element('p', 'Times from the begin of the last rank to the end of the last; skew from the first begin to the last; GB/s: bus bandwidth.'));
}

function showHead() {
  const ranks = groups.filter(group => group.rank >= 0).length || groups.length, hosts = new Set(groups.map(group => group.host)).size;
  const exes = [...new Set(groups.map(group => group.exe.split('/').pop()))].filter(Boolean);
  const title = `${many(ranks, 'rank')} on ${many(hosts, 'host')}, ${time(facts.end_nsec)}, ${many(facts.all_operations, 'operation')}`;
  document.title = `${title} - Tutti trace`;
  put('title', title);
  const clock = facts.clocks.length < 2 ? '' : ` Clocks of the hosts are aligned: ${facts.clocks.slice(1).map(([host, error, by]) =>
    `${host} ${by ? `to within ${time(error)}` : 'by wall clocks, error unknown'}`).join(', ')}.`;
  put('about', `A run of ${exes.join(', ') || 'an unknown program'} in ${many(facts.comms.length, 'communicator')}, ${many(facts.events, 'event')}.${clock}`);
  const warn = [];
  if (facts.join_nsec) warn.push(`The run has too many events for one page: those shorter than ${time(facts.join_nsec)} are drawn together (${many(facts.blocks, 'bar')})${facts.detailed ? ', and one by one where you zoom in' : ''}.`);
  if (facts.operation_nsec) warn.push(`Operations shorter than ${time(facts.operation_nsec)} are in the table of operations only.`);
  if (facts.all_states > facts.states) warn.push('The run has too many states of events for one page: they are left out.');
  for (const [k, [, , nranks, here]] of facts.comms.entries()) if (nranks > here && warn.length < 4) warn.push(`Of communicator ${commName(k)} the files of ${here} are here: nothing is known of the other ranks.`);
  if (facts.lost) warn.push(`${many(facts.lost, 'record')} did not fit into the recorder.`);
  if (facts.left_out) warn.push(`${many(facts.left_out, 'record')} did not fit into memory (--memory).`);
  if (facts.complaints) warn.push(`The files had ${many(facts.complaints, 'fault')}; tutti trace check says which.`);
  byId('warning').hidden = !warn.length;
  put('warning', warn.join(' '));
}
function swatch(colour) {
  const made = element('span', [], { className: 'swatch' });
  made.style.background = colour;
  return made;
}
function showLegend() {
  const functions = [...new Set(parts.map(part => part.func))].sort(), types = [...new Set(facts.kinds.map(kind => kind[KIND.type]))].sort((a, b) => a - b);
  const waits = swatch(`repeating-linear-gradient(135deg, ${functionColours[0]} 0 2px, transparent 2px 4px)`);
  put('legend', element('b', 'Operations of a rank:'), ...functions.map(name => element('span', [swatch(functionColour(name)), name])), element('span', [waits, 'waits for ranks']), ...(facts.stops.length ? [element('span', 'dashed: never begins')] : []), element('span', '→ the order in which ranks begin'),
    element('b', 'Events:'), ...types.map(type => element('span', [swatch(colourOfType[type]), facts.types[type]])));
  put('types', ...types.map(type => element('label', [element('input', [], { type: 'checkbox', checked: true, value: type, onchange(event) {
    if (event.target.checked) view.hidden.delete(type); else view.hidden.add(type);
    changeFilter();
  } }), ` ${facts.types[type]}`])));
  put('comm', element('option', 'all', { value: -1 }), ...facts.comms.map((_, k) => element('option', commName(k), { value: k })));
  put('rank', element('option', 'all', { value: -1 }), ...groups.map(group => element('option', groupName(group), { value: group.index })));
}
function changeFilter() {
  filterKinds();
  layOut();
  draw();
}
