// The run: facts as JSON, events and operations as numbers of 7 bits a byte (pack.c writes them).
const facts = JSON.parse(document.getElementById('facts').textContent);
const KIND = { type: 0, func: 1, datatype: 2, algo: 3, proto: 4, comm: 5, open: 6, flag: 7, channels: 8 };
const TYPE = Object.fromEntries(facts.types.map((name, type) => [name, type]));

function bytesOf(text) {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const bytes = new Uint8Array(Math.floor(text.length * 3 / 4) - padding);
  let at = 0;
  for (let k = 0; k < text.length; k += 1 << 20) {
    const piece = atob(text.slice(k, k + (1 << 20)));
    for (let i = 0; i < piece.length; i++) bytes[at++] = piece.charCodeAt(i);
  }
  return bytes;
}

const reader = {
  bytes: null, at: 0,
  number() {
    let value = 0, scale = 1, byte;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    return value;
  },
  signed() {
    const number = this.number();
    return number % 2 ? -(number + 1) / 2 : number / 2;
  },
};

const blocks = {
  start: new Float64Array(facts.blocks), end: new Float64Array(facts.blocks),
  kind: new Uint32Array(facts.blocks), joined: new Uint32Array(facts.blocks),
  parent: new Int32Array(facts.blocks), number: new Float64Array(facts.blocks),
  count: new Float64Array(facts.blocks), peer: new Int32Array(facts.blocks),
  states: new Uint32Array(facts.blocks + 1), // the first of its states; they end where the next block's begin
};
const states = { at: new Float64Array(facts.states), name: new Uint16Array(facts.states), value: new Float64Array(facts.states) };
const groups = facts.groups.map(([rank, pid, host, exe], index) => ({ index, rank, pid, host, exe, lanes: [], parts: null }));
const lanes = facts.lanes.map(([group, name], index) => ({ index, group: groups[group], name, rows: [] }));
for (const lane of lanes) lane.group.lanes.push(lane);
const rows = [];
const operations = [];
const parts = [];
let firstBegin = 0; // of the first operation; 0: there is none

function readStates(b) {
  let s = blocks.states[b], at = blocks.start[b];
  for (let count = reader.number(); count > 0; count--, s++) {
    at += reader.signed();
    states.at[s] = at;
    states.name[s] = reader.number();
    states.value[s] = reader.number();
  }
  blocks.states[b + 1] = s;
}

function readRows() {
  let b = 0;
  for (const [lane, count] of facts.rows) {
    const row = { lane: lanes[lane], first: b, last: b + count };
    let before = 0;
    rows.push(row);
    row.lane.rows.push(row);
    for (; b < row.last; b++) {
      before += reader.number();
      blocks.start[b] = before;
      blocks.end[b] = before + reader.number();
      blocks.kind[b] = reader.number();
      blocks.joined[b] = reader.number();
      blocks.parent[b] = reader.number() ? b - reader.signed() : -1;
      blocks.number[b] = reader.number();
      blocks.count[b] = reader.number();
      blocks.peer[b] = reader.number() - 1;
      readStates(b);
    }
  }
}

function readOperation(before, index) {
  const op = { index, begin: before + reader.signed(), comm: reader.number(), func: facts.words[reader.number()] };
  op.seq = reader.number();
  const flags = reader.number(), count = reader.number();
  op.message = (flags & 1) === 1;
  op.whole = (flags & 2) === 2;
  op.parts = [];
  op.lastBegin = op.begin;
  op.end = op.begin;
  for (let k = 0; k < count; k++) {
    const block = reader.number(), begin = op.begin + reader.number(), length = reader.number();
    const part = { op, block, begin, open: length === 0, end: length ? begin + length - 1 : facts.end_nsec, group: rowOf(block).lane.group };
    part.func = op.message && k === 1 ? 'Recv' : op.func;
    part.waits = begin;
    op.parts.push(part);
    parts.push(part);
    op.lastBegin = Math.max(op.lastBegin, begin);
    op.end = Math.max(op.end, part.end);
  }
  for (const part of op.parts) part.waits = op.message ? part.begin : Math.min(op.lastBegin, part.end);
  op.order = op.message ? op.parts : [...op.parts].sort((a, b) => a.begin - b.begin);
  op.late = op.order[op.order.length - 1];
  op.lateBy = op.message || op.order.length < 2 ? 0 : op.late.begin - op.order[op.order.length - 2].begin;
  return op;
}

// Where the run stopped: who waits in an operation does so until its end, for groups that never began it.
function readStop(op, cause, absent, waiting, text) {
  op.stop = { cause: cause === 1, queued: cause === 2, text, waits: waiting.length > 0, absent: absent.map(index => groups[index]) };
  for (const group of op.stop.absent) (group.absent ??= []).push(op);
  if (absent.length || cause === 2) for (const part of op.parts) if (waiting.includes(part.group.index)) part.waits = part.end;
}
// Groups that an operation waits for to its end; none where it ended well.
function absentOf(op) { return op.stop ? op.stop.absent : []; }
function groupNames(list) {
  const names = list.slice(0, 4).map(groupName);
  return list.length > 4 ? `${names.join(', ')} and ${list.length - 4} more` : names.join(', ');
}

// The first index in [low, high) for which `over` holds; high if none.
function firstOf(low, high, over) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (over(middle)) high = middle; else low = middle + 1;
  }
  return low;
}

function rowOf(block) { return rows[firstOf(0, rows.length, r => rows[r].last > block)]; }
function kindOf(block) { return facts.kinds[blocks.kind[block]]; }
function typeOf(block) { return kindOf(block)[KIND.type]; }
function word(number) { return facts.words[number] || ''; }

function readAll() {
  const element = document.getElementById('numbers');
  reader.bytes = bytesOf(element.textContent);
  element.remove();
  readRows();
  for (let k = 0, before = 0; k < facts.operations; k++) {
    operations.push(readOperation(before, k));
    before = operations[k].begin;
  }
  for (const [index, cause, absent, waiting, text] of facts.stops) readStop(operations[index], cause, absent, waiting, text);
  reader.bytes = null;
  firstBegin = operations.reduce((least, op) => Math.min(least, op.begin), operations.length ? Infinity : 0);
  // What was queued behind a stop and has no kernel never ran: only its calls and launches are drawn.
  const runs = part => children(part.block).some(b => facts.types[typeOf(b)] === 'KernelCh');
  for (const op of operations) op.queued = Boolean(op.stop?.queued) && !op.parts.some(runs);
  for (const group of groups) group.parts = [];
  for (const part of parts) if (!part.op.queued) part.group.parts.push(part);
  for (const group of groups) group.parts.sort((a, b) => a.begin - b.begin);
}

// ---- words for people ----

function time(nsec) {
  const size = Math.abs(nsec);
  if (size < 1e3) return `${Math.round(nsec)} ns`;
  if (size < 1e6) return `${(nsec / 1e3).toFixed(size < 1e4 ? 2 : 1)} us`;
  if (size < 1e9) return `${(nsec / 1e6).toFixed(size < 1e7 ? 3 : 2)} ms`;
  return `${(nsec / 1e9).toFixed(3)} s`;
}
function amount(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let k = 0;
  for (; bytes >= 1024 && k < 4; k++) bytes /= 1024;
  return `${Number(bytes.toFixed(1))} ${units[k]}`;
}
function many(number, one) { return `${number.toLocaleString('en')} ${one}${number === 1 ? '' : 's'}`; }
function elementBytes(datatype) { return Number(/64|32|16|8/.exec(word(datatype))?.[0] ?? 0) / 8; }
function dataText(block) { return `${blocks.count[block].toLocaleString('en')} x ${word(kindOf(block)[KIND.datatype])}`; }
// What an operation moves. The library turns the types of some calls into bytes before it reports them: then the call's own stand there too.
function dataOf(block) {
  const kind = kindOf(block), call = blocks.parent[block];
  if (!kind[KIND.datatype] || blocks.joined[block] > 1) return '';
  const size = `${dataText(block)} (${amount(blocks.count[block] * elementBytes(kind[KIND.datatype]))})`;
  if (call < 0 || blocks.joined[call] > 1 || !kindOf(call)[KIND.datatype] || dataText(call) === dataText(block)) return size;
  return `${size}, called with ${dataText(call)}`;
}
// Two hosts of which one sends to the other.
function between(from, to) { return from.host === to.host ? '' : `, from ${from.host} to ${to.host}`; }
function groupName(group) { return group.rank >= 0 ? `rank ${group.rank}` : `pid ${group.pid}`; }
// "ranks 0 to 3", "ranks 0 and 4": groups in their order.
function rankText(members) {
  const ranks = members.map(group => group.rank).sort((a, b) => a - b), runs = [];
  for (const rank of ranks) if (runs.length && runs.at(-1)[1] === rank - 1) runs.at(-1)[1] = rank; else runs.push([rank, rank]);
  const said = runs.slice(0, 4).flatMap(([a, b]) => (b > a + 1 ? [`${a} to ${b}`] : b > a ? [a, b] : [a])), more = runs.length > 4 ? [`${runs.length - 4} more`] : [], all = [...said, ...more];
  return `${ranks.length === 1 ? 'rank' : 'ranks'} ${all.length > 1 ? `${all.slice(0, -1).join(', ')} and ${all.at(-1)}` : all[0]}`;
}
// What a communicator is called where there are several: its name, and its ranks where they have no name of their own.
let commLabels = null;
function commLabel(comm) {
  if (!commLabels) {
    const members = facts.comms.map(() => new Set()), times = list => list.reduce((found, text) => found.set(text, (found.get(text) || 0) + 1), new Map());
    for (const op of operations) for (const group of [...op.parts.map(part => part.group), ...absentOf(op)]) members[op.comm].add(group);
    const ranks = members.map(set => (set.size ? rankText([...set]) : '')), names = facts.comms.map(([, name]) => name), named = times(names);
    commLabels = facts.comms.map(([id], k) => (names[k] && named.get(names[k]) === 1 ? names[k] : names[k] && ranks[k] ? `${names[k]}, ${ranks[k]}` : names[k] || ranks[k] || id));
    const found = times(commLabels);
    commLabels = commLabels.map((label, k) => (found.get(label) > 1 ? `${label} (${facts.comms[k][0].slice(-4)})` : label));
  }
  return commLabels[comm];
}
function commName(comm) {
  const [id, name, nranks] = facts.comms[comm], label = commLabel(comm);
  return facts.comms.length > 1 ? `${label} (${label.includes(id) ? many(nranks, 'rank') : id})` : `${name || id} (${many(nranks, 'rank')})`;
}
// "AllReduce #3", and where there are several communicators, of which.
function opName(op) { return `${op.func} #${op.seq}${facts.comms.length > 1 ? ` of ${commLabel(op.comm)}` : ''}`; }
const PROXY_DOES = { ProxyCtrlSleep: 'asleep', ProxyCtrlAppend: 'takes operations', ProxyCtrlIdle: 'idle', ProxyCtrlActive: 'active' };
function proxyDoes(block) {
  const first = blocks.states[block];
  return first < blocks.states[block + 1] ? PROXY_DOES[word(states.name[first])] || '' : '';
}
function kindName(kind, number) {
  const type = facts.types[kind[KIND.type]], name = kind[KIND.func] && type !== 'KernelPhase' ? word(kind[KIND.func]) : type;
  if (type === 'ProxyStep') return `${name} ${number}`;
  return type === 'ProxyOp' ? `${name} ${kind[KIND.flag] ? 'send' : 'receive'}` : name;
}
function nameOf(block) {
  const kind = kindOf(block), type = facts.types[kind[KIND.type]];
  let name = kindName(kind, blocks.number[block]);
  if (type === 'ProxyCtrl') name = `${name} ${proxyDoes(block)}`.trim();
  return blocks.joined[block] > 1 ? `${blocks.joined[block]} x ${type}` : name;
}

// The operation that an event belongs to: that of the Coll or P2p which is its parent, itself or its child.
let operationOfBlock = null;
function operationOf(block) {
  if (!operationOfBlock) {
    operationOfBlock = new Map(parts.map(part => [part.block, part]));
    for (const part of parts) {
      for (let up = blocks.parent[part.block], k = 0; up >= 0 && k < 8; up = blocks.parent[up], k++)
        if (!operationOfBlock.has(up) && blocks.joined[up] === 1) operationOfBlock.set(up, part);
    }
  }
  for (let k = 0; block >= 0 && k < 8; block = blocks.parent[block], k++)
    if (operationOfBlock.has(block)) return operationOfBlock.get(block);
  return null;
}
