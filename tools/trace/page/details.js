// What joined blocks are made of: read from the page's texts when the reader looks closely, the last ones used are kept.
const DETAILS_KEPT = 400;
const detailsKept = new Map(); // by chunk, the one used last at the end

function readDetails(chunk) {
  const [first, last] = facts.chunks[chunk], of = new Map();
  let count = 0;
  for (let b = first; b < last; b++) count += blocks.joined[b] > 1 ? blocks.joined[b] : 0;
  const read = { of, start: new Float64Array(count), end: new Float64Array(count), kind: new Uint32Array(count), number: new Float64Array(count), peer: new Int32Array(count) };
  reader.bytes = bytesOf(document.getElementById(`detail${chunk}`).textContent);
  reader.at = 0;
  for (let b = first, d = 0; b < last; b++) {
    if (blocks.joined[b] < 2) continue;
    of.set(b, [d, d + blocks.joined[b]]);
    for (let before = 0, end = d + blocks.joined[b]; d < end; d++) {
      before += reader.number();
      read.start[d] = before;
      read.end[d] = before + reader.number();
      read.kind[d] = reader.number();
      read.number[d] = reader.number();
      read.peer[d] = reader.number() - 1;
    }
  }
  reader.bytes = null;
  return read;
}

// {start, end, kind, number, peer} of all and [first, last) of the block's own; null where the page has none.
function detailsOf(block) {
  if (blocks.joined[block] < 2 || !facts.detailed) return null;
  const chunk = firstOf(0, facts.chunks.length, k => facts.chunks[k][1] > block);
  const read = detailsKept.get(chunk) ?? readDetails(chunk), [first, last] = read.of.get(block);
  detailsKept.delete(chunk);
  detailsKept.set(chunk, read);
  if (detailsKept.size > DETAILS_KEPT) detailsKept.delete(detailsKept.keys().next().value);
  return { ...read, first, last };
}

// The event of a joined block at a moment; null: there is none, or the page does not have it.
function detailAt(block, at, slack) {
  const found = detailsOf(block);
  if (!found) return null;
  const d = firstOf(found.first, found.last, k => found.end[k] >= at - slack);
  if (d >= found.last || found.start[d] > at + slack) return null;
  return { start: found.start[d], end: found.end[d], kind: facts.kinds[found.kind[d]], number: found.number[d], peer: found.peer[d] };
}
function detailName(detail) { return kindName(detail.kind, detail.number); }
