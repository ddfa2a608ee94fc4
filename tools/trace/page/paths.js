// Who was late, and what an operation waited for.
let firstChild = null, nextChild = null;
function children(block) {
  if (!firstChild) {
    firstChild = new Int32Array(facts.blocks).fill(-1);
    nextChild = new Int32Array(facts.blocks).fill(-1);
    for (let b = facts.blocks - 1; b >= 0; b--) {
      if (blocks.parent[b] < 0) continue;
      nextChild[b] = firstChild[blocks.parent[b]];
      firstChild[blocks.parent[b]] = b;
    }
  }
  const found = [];
  for (let b = firstChild[block]; b >= 0; b = nextChild[b]) found.push(b);
  return found;
}

// What a rank sent and received in an operation: the steps of its proxy.
function movesOf(part) {
  const found = [];
  for (const proxy of children(part.block)) {
    if (facts.types[typeOf(proxy)] !== 'ProxyOp' || blocks.joined[proxy] > 1) continue;
    const channel = Number(/channel (\d+)/.exec(rowOf(proxy).lane.name)?.[1] ?? -1);
    for (const b of children(proxy)) {
      if (facts.types[typeOf(b)] !== 'ProxyStep' || blocks.joined[b] > 1) continue;
      found.push({ peer: blocks.peer[proxy], sends: kindOf(proxy)[KIND.flag] !== 0, channel, step: blocks.number[b],
        from: blocks.start[b], to: blocks.end[b] });
    }
  }
  return found;
}

// From rank to rank back to `from`: what the last rank received last, who sent that, what that one had received before,
// and so on. Steps in order of time; none where the trace has no steps of proxies.
function dataPath(op, last, from) {
  const HOPS = 64, nranks = facts.comms[op.comm][2], moves = new Map();
  const rankOf = part => op.parts.length === nranks ? op.parts.indexOf(part) : part.group.rank;
  const of = part => moves.get(part) ?? moves.set(part, movesOf(part)).get(part);
  let steps = [], part = last, until = last.end;
  for (let hop = 0; hop < HOPS && until > from; hop++) {
    let got = null;
    for (const m of of(part)) if (!m.sends && m.to <= until && m.to > from && (!got || m.to > got.to)) got = m;
    const sender = got && op.parts.find(p => rankOf(p) === got.peer), receiver = part;
    const fits = m => m.sends && m.step === got.step && m.channel === got.channel && m.peer === rankOf(receiver);
    const sent = sender && sender !== part && of(sender).find(fits);
    if (!sent || sent.from >= got.to) break;
    const begun = Math.max(sent.from, from), gone = Math.max(Math.min(sent.to, got.to), begun);
    steps = [
      { from: begun, to: gone, group: sender.group, what: `sends step ${got.step} to ${groupName(part.group)} on channel ${got.channel}${between(sender.group, part.group)}` },
      { from: gone, to: got.to, group: part.group, what: `receives step ${got.step} from ${groupName(sender.group)}` },
      { from: got.to, to: until, group: part.group, what: hop ? 'from what it received to what it sends' : 'from its last data to its end' },
      ...steps];
    part = sender;
    until = begun;
  }
  return { steps, part, until };
}

// Where no proxy works (memory that ranks share) no event tells of a hop. What the ends of the channels show: which one was
// the last, when it began, and from when on it alone worked. Steps from `from` on; none where there are no kernels.
function channelsPath(op, last, from) {
  const ends = [];
  for (const part of op.parts) {
    for (const b of children(part.block)) {
      const type = facts.types[typeOf(b)];
      if (type === 'ProxyOp' || blocks.joined[b] > 1) return [];
      if (type === 'KernelCh') ends.push({ part, from: blocks.start[b], to: blocks.end[b], name: /channel \d+/.exec(rowOf(b).lane.name)?.[0] ?? rowOf(b).lane.name });
    }
  }
  const end = ends.filter(e => e.part === last).reduce((a, b) => (a && a.to >= b.to ? a : b), null);
  if (!end || ends.length < 2) return [];
  const begun = Math.min(Math.max(end.from, from), end.to), others = ends.reduce((most, e) => (e === end ? most : Math.max(most, e.to)), begun);
  const alone = Math.min(others, end.to);
  return [
    { from, to: begun, group: last.group, what: `${end.name}, which ends last, has not begun` },
    { from: begun, to: alone, group: last.group, what: `${end.name}, which ends last, works beside others` },
    { from: alone, to: end.to, group: last.group, what: `${end.name} works alone: all other channels of all ranks have ended` }];
}

// What one that never began an operation did instead, until the others gave up or the run ended.
function absence(op) {
  const held = group => group.parts.find(part => part.op.stop && part.op !== op && part.waits === part.end && absentOf(part.op).length);
  const group = absentOf(op).find(g => !held(g)) || absentOf(op)[0], wait = held(group);
  if (wait) return { from: Math.min(wait.begin, op.begin), to: op.end, group, what: `waits in ${opName(wait.op)}, and never begins this` };
  let before = null;
  for (const part of group.parts) if (part.op !== op && part.end < op.end && (!before || part.end > before.end)) before = part;
  if (!before) return { from: op.begin, to: op.end, group, what: 'begins nothing' };
  return { from: before.end, to: op.end, group, what: `outside of NCCL, after ${opName(before.op)}; it never begins this` };
}

// The chain of times that ends with the operation: what the rank that began last did before, its call, its launch, what
// it was queued behind, and then the data's way until the rank that ended last. Times lie behind each other without gaps.
function criticalPath(op) {
  const late = op.late, steps = [];
  if (absentOf(op).length) return { op, late, last: late, steps: [absence(op)] };
  let last = op.parts[0];
  for (const part of op.parts) if (part.end > last.end) last = part;
  let call = late.block;
  const captured = b => /Api$/.test(facts.types[typeOf(b)]) && kindOf(b)[KIND.flag] !== 0; // long ago: the graph runs now
  for (let k = 0; blocks.parent[call] >= 0 && !captured(blocks.parent[call]) && k < 8; k++) call = blocks.parent[call];
  const launch = blocks.parent[call] >= 0 ? 'launch of its graph' : 'launch';
  const called = Math.min(blocks.start[call], late.begin);
  let before = null, ahead = null; // ahead: of the same communicator, still running after the launch
  for (const part of late.group.parts) {
    if (part.begin >= late.begin) break;
    if (part.op !== op && part.op.comm === op.comm && part.end <= late.begin && (!ahead || part.end > ahead.end)) ahead = part;
    if (part.op !== op && part.end <= called && (!before || part.end > before.end)) before = part;
  }
  const add = (from, to, group, what) => { if (to > from) steps.push({ from, to, group, what }); };
  if (before) add(before.end, called, late.group, `outside of NCCL, after ${opName(before.op)}`);
  const queued = Math.min(Math.max(blocks.start[late.block], called), late.begin);
  add(called, queued, late.group, 'from the call to the launch of the operation');
  if (ahead && ahead.end > queued) {
    add(queued, ahead.end, late.group, `queued behind ${opName(ahead.op)}`);
    add(ahead.end, late.begin, late.group, 'from its end to the first kernel');
  } else {
    add(queued, late.begin, late.group, `from the ${launch} to the first kernel`);
  }
  let end = -1;
  for (const b of children(last.block)) if (end < 0 || blocks.end[b] > blocks.end[end]) end = b;
  const by = end >= 0 ? `, by ${nameOf(end)} (${rowOf(end).lane.name})` : '';
  const way = dataPath(op, last, late.begin);
  const channels = way.steps.length ? [] : channelsPath(op, last, late.begin);
  if (way.steps.length) add(late.begin, way.until, way.part.group, 'until it sends');
  else if (!channels.length) add(late.begin, last.end, last.group, `data moves; it is the last to end${by}`);
  for (const step of [...way.steps, ...channels]) add(step.from, step.to, step.group, step.what);
  return { op, late, last, steps };
}

// For each rank: how often it began last, and how long the others waited for it alone.
function stragglers() {
  const found = new Map(groups.map(group => [group, { group, times: 0, of: 0, never: 0, cost: 0, most: null }]));
  for (const op of operations) {
    if (op.queued || (!absentOf(op).length && (op.message || op.parts.length < 2))) continue;
    for (const part of op.parts) found.get(part.group).of++;
    const waited = op.end - op.lastBegin;
    for (const group of absentOf(op)) {
      const row = found.get(group);
      row.of++;
      row.never++;
      row.cost += op.stop.waits ? waited : 0;
      row.longest = Math.max(row.longest ?? 0, waited);
      if (!row.most || row.longest === waited) row.most = op;
    }
    if (absentOf(op).length) continue;
    const row = found.get(op.late.group);
    row.times++;
    row.cost += op.lateBy;
    if (!row.never && (!row.most || op.lateBy > row.most.lateBy)) row.most = op;
  }
  return [...found.values()].filter(row => row.of).sort((a, b) => (b.never > 0) - (a.never > 0) || b.cost - a.cost);
}

// Time of all ranks inside of collectives, what of it they wait, who is waited for, and what did not end.
function insideOf() {
  const found = { inside: 0, waits: 0, late: stragglers(), broken: operations.filter(op => !op.whole && !op.stop) };
  for (const part of parts) {
    if (part.op.queued || part.op.message || part.op.parts.length + absentOf(part.op).length < 2) continue;
    found.inside += part.end - part.begin;
    found.waits += Math.max(part.waits - part.begin, 0);
  }
  return found;
}

// From the first begin to the last, which never comes where one is absent.
function skewOf(op) { return (absentOf(op).length ? op.end : op.lastBegin) - op.begin; }
function worstOperations() {
  return operations.filter(op => !op.queued && (absentOf(op).length || (!op.message && op.parts.length > 1))).sort((a, b) => skewOf(b) - skewOf(a)).slice(0, 12);
}

// Blocks that fit all words of a query, in the order of rows; null where there is no word.
function find(query) {
  const tests = [], words = query.trim().toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  const texts = facts.kinds.map(k => [facts.types[k[KIND.type]], ...[KIND.func, KIND.datatype, KIND.algo, KIND.proto].map(f => word(k[f])),
    k[KIND.comm] >= 0 ? facts.comms[k[KIND.comm]].slice(0, 2).join(' ') : ''].join(' ').toLowerCase());
  const scale = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
  let rank = null;
  for (const item of words) {
    const length = /^>(\d+(?:\.\d+)?)(ns|us|ms|s)$/.exec(item), number = /^#(\d+)$/.exec(item), of = /^rank:(\d+)$/.exec(item);
    if (length) tests.push(b => blocks.end[b] - blocks.start[b] > Number(length[1]) * scale[length[2]]);
    else if (number) tests.push(b => blocks.number[b] === Number(number[1]) && ['Coll', 'P2p', 'ProxyStep'].includes(facts.types[typeOf(b)]));
    else if (of) rank = Number(of[1]);
    else {
      const fits = texts.map(text => text.includes(item));
      tests.push(b => fits[blocks.kind[b]]);
    }
  }
  const hits = [];
  for (const row of rows) {
    if (rank !== null && row.lane.group.rank !== rank) continue;
    for (let b = row.first; b < row.last; b++) if (tests.every(test => test(b))) hits.push(b);
  }
  return hits;
}
