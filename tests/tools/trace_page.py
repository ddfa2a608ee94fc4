#!/usr/bin/env python3
"""`tutti trace page`: the file alone, and in a Chromium: what it shows, mouse, keyboard, search, filters, dark and light, a
run of too many events, and a trace whose texts would like to be markup. usage: trace_page.py TUTTI file|browser"""
import json, os, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser
from trace_made import Rank, stopped

tutti, mode = sys.argv[1:]
US, MS = 1000, 1000000
HOSTILE = "</script><img src=x onerror=alert(1)><!--&lt;"


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def write(folder, rank, operations, name="", host=None, func="AllReduce", steps=2, comms=1, chain=False, memory=False, graph=False):
    """Rank r begins 10 r us late in each operation, rank 3 of the fifth 300 us; all end 100 us after the last begins. In `memory` there is no
    proxy but a second channel, which rank 2 begins 20 us after all are there, and ends 7 us after all other channels. In a `graph` the first call was captured, and all others run it."""
    lines = [{"t": "head", "v": 1, "host": host or f"node{rank // 2}", "pid": 100 + rank, "exe": "/opt/made", "start_wall_ns": 10**18,
              "start_mono_ns": 10**12, "clock": "monotonic", "api": 7, "mask": 4095},
             {"t": "comm", "c": 1, "comm": "00000000000000ab", "name": name, "rank": rank, "nranks": 4, "nnodes": 2},
             {"t": "thread", "tid": 5, "name": name or "main"}]
    lines += [lines[1] | {"c": c, "comm": f"{0xab + c:016x}"} for c in range(2, comms + 1)]
    number = 0

    def event(kind, parent, begin, end, **more):
        nonlocal number
        number += 1
        lines.append({"t": "start", "id": number, "parent": parent, "c": 1 + k % comms, "tid": 5, "ts": 10**12 + begin, "type": kind, **more})
        lines.append({"t": "stop", "id": number, "ts": 10**12 + end})
        return number

    data = {"func": func, "datatype": "ncclFloat32", "count": 256, "root": -1}
    for k in range(operations):
        begin, last = k * MS + rank * 10 * US, k * MS + 30 * US
        if k == 5:
            begin, last = begin + (270 * US if rank == 3 else 0), k * MS + 300 * US
        if k == 0 or not graph:
            group = event("GroupApi", 0, begin - 900, begin - 100, depth=1, captured=int(graph))
            api = event("CollApi", group, begin - 800, begin - 500, captured=int(graph), **data)
        coll = event("Coll", api, begin - 400, begin - 200, seq=k // comms, algo="RING", proto="SIMPLE", channels=1, warps=1, group=0, **data)
        event("KernelCh", coll, begin, last + 100 * US, channel=0, timer=1)
        if memory:
            event("KernelCh", coll, *(begin, last + 90 * US) if rank != 2 else (last + 20 * US, last + 107 * US), channel=1, timer=1)
            continue
        op = event("ProxyOp", coll, begin + US, last + 90 * US, channel=0, peer=(rank + 1) % 4, steps=steps, chunk=512, send=1)
        for s in range(steps):
            step = event("ProxyStep", op, begin + (2 + s) * US, begin + (2 + s) * US + 900, step=s)
            for state, after, value in (("ProxyStepSendGPUWait", 100, 0), ("ProxyStepSendWait", 400, 512)):
                lines.insert(-1, {"t": "state", "id": step, "ts": 10**12 + begin + (2 + s) * US + after, "state": state, "value": value})
        if chain:  # rank 3 sends to 0, which sends to 1, and that one to 2: step by step, 25 us each, of which 15 are sending
            at = last + [25, 50, 75, 0][rank] * US
            if rank != 3:
                op = event("ProxyOp", coll, begin, at + US, channel=1, peer=(rank + 3) % 4, steps=3, chunk=512, send=0)
                event("ProxyStep", op, begin, at - 5 * US, step=rank)
            if rank != 2:
                op = event("ProxyOp", coll, begin, at + 20 * US, channel=1, peer=(rank + 1) % 4, steps=3, chunk=512, send=1)
                event("ProxyStep", op, at + (US if rank == 3 else 0), at + 15 * US, step=(rank + 1) % 4)
            else:
                event("KernelCh", coll, begin, last + 110 * US, channel=1, timer=1)
    with open(f"{folder}/{rank}.jsonl", "w") as out:
        out.write("".join(json.dumps(line) + "\n" for line in lines))


def page(folder, *options, **kw):
    os.makedirs(folder)
    for rank in range(4):
        write(folder, rank, **kw)
    path = f"{folder}/page.html"
    done = subprocess.run([tutti, "trace", "page", "-o", path, *options, folder], text=True, capture_output=True, timeout=100)
    check(done.returncode == 0, f"exit {done.returncode}: {done.stderr}")
    return path


def facts(text):
    return json.loads(re.search(r'id="facts">\n(.*?)</script>', text, re.S)[1])


# ---- the file ----

def the_file(folder):
    text = open(page(f"{folder}/a", operations=10)).read()
    found = facts(text)
    check((found["events"], found["blocks"], found["operations"], found["join_nsec"]) == (280, 280, 10, 0), found)
    check((found["states"], found["all_states"]) == (160, 160), f"states: {found['states']}")
    check(sum(count for _, count in found["rows"]) == 280 and len(found["groups"]) == 4, found["rows"])
    check("://" not in text, "an address in the page")
    check(not re.search(r"[@](style|script|policy|data)[@]", text), "a mark of the template is left")
    # short events are joined, and no more than asked for are left
    joined = facts(open(page(f"{folder}/b", "--events", "1000", operations=200)).read())
    check(joined["events"] == 5600 and 0 < joined["blocks"] <= 1000 and joined["join_nsec"] > 0, joined["blocks"])
    check(4000 < joined["detailed"] <= 5600, joined["detailed"])
    check(joined["chunks"] and all(first < last for first, last in joined["chunks"]), joined["chunks"])
    bare = facts(open(page(f"{folder}/f", "--events", "1000", "--details", "4000", operations=200)).read())
    check((bare["detailed"], bare["chunks"], bare["blocks"]) == (0, [], joined["blocks"]), "more details than were asked for")
    check(joined["states"] in (0, joined["all_states"]) and joined["states"] <= 1000, f"states: {joined['states']}")
    many = facts(open(page(f"{folder}/e", "--events", "1300", operations=20, steps=10)).read())
    check((many["blocks"], many["states"], many["all_states"]) == (1200, 0, 1600), f"too many states: {many['blocks']} {many['all_states']}")
    check(facts(open(page(f"{folder}/d", operations=10, comms=2)).read())["operations"] == 10, "two communicators")
    # text stays text: as many tags as a page without it has
    hostile = open(page(f"{folder}/c", operations=10, name=HOSTILE, func=HOSTILE, host=HOSTILE)).read()
    check("onerror=alert" not in hostile or hostile.count("<img") == 0, "markup of a trace")
    for tag in ("<script", "</script", "<img", "<!--"):
        check(hostile.count(tag) == text.count(tag), f"{tag} comes from the trace")
    check("img" in json.dumps(facts(hostile)), "the text is not in the page at all")
    # nothing to write to, nothing to read
    for options, code in ((["-o", "/nowhere/page.html", f"{folder}/a"], 1), (["--events", "1", f"{folder}/a"], 2), ([], 2)):
        done = subprocess.run([tutti, "trace", "page", *options], text=True, capture_output=True, timeout=100)
        check(done.returncode == code and done.stderr, f"{options}: {done}")


# ---- in a browser ----

def of(page, selector):
    return page.run(f"document.querySelector({json.dumps(selector)}).textContent")


# How many pixels of the canvas have a colour, of a rectangle of it.
COLOURED = """(() => { const c = document.getElementById('canvas'), d = c.getContext('2d').getImageData(%d, %d, %d, %d).data; let n = 0;
  for (let i = 0; i < d.length; i += 4) if (d[i] === %d && d[i + 1] === %d && d[i + 2] === %d) n++; return n; })()"""
# Where the first one of them is.
COLOUR_AT = """(() => { const x = %d, y = %d, w = %d, c = document.getElementById('canvas'), d = c.getContext('2d').getImageData(x, y, w, %d).data;
  for (let i = 0; i < d.length; i += 4) if (d[i] === %d && d[i + 1] === %d && d[i + 2] === %d) return [x + i / 4 %% w, y + Math.floor(i / 4 / w)];
  return null; })()"""
BLUE, TEAL, RED, LILAC, PURPLE, WARN = (0x2f, 0x7f, 0xd6), (0x2a, 0xa1, 0x98), (0xe1, 0x1d, 0x48), (0xc5, 0x8f, 0xe0), (0x8a, 0x63, 0xd2), (0x9a, 0x34, 0x12)


def pixels(page, colour, box=(250, 24, 700, 300)):
    page.wait_idle()
    return page.run(COLOURED % (*box, *colour))


def canvas_point(page, x, y):
    left, top = page.run("(() => { const r = document.getElementById('canvas').getBoundingClientRect(); return [r.left, r.top]; })()")
    return left + x, top + y


def usec(text):
    number, unit = text.split()
    return float(number) * {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}[unit]


def shows(page, path):
    page.open(path)
    check(of(page, "#title").startswith("4 ranks on 2 hosts") and "10 operations" in of(page, "#title"), of(page, "#title"))
    check("A run of made in 1 communicator, 280 events." in of(page, "#about"), of(page, "#about"))
    check(not page.run("document.getElementById('warning').hidden === false"), "a warning without a reason")
    rows = [page.run(f"[...document.querySelectorAll('#{name} tbody tr')].map(r => [...r.cells].map(c => c.textContent))") for name in ("stragglers", "table")]
    check(rows[0][0][:3] == ["rank 3", "10", "10"], rows[0])
    check(rows[1][0][:3] == ["AllReduce", "1 KiB", "10"], rows[1])
    # four rows of ranks in blue, nothing below; one unfolded shows its kernels
    check(all(pixels(page, BLUE, (250, 24 + 26 * r, 700, 26)) > 100 for r in range(4)), "a rank's row is empty")
    check(pixels(page, TEAL) == 0, "folded ranks show kernels")
    page.click(*canvas_point(page, 40, 36))
    check(pixels(page, TEAL) > 100, "an unfolded rank shows no kernels")
    page.click(*canvas_point(page, 40, 36))
    check(pixels(page, TEAL) == 0, "a rank does not fold again")


def explains(page):
    short = page.run("[...document.querySelectorAll('#short li')].map(item => item.textContent)")
    check(len(short) == 3 and re.search(r"for 2\d\u00a0% of it they wait", short[0]), short)
    check("for rank 3 on node1 alone, the longest at AllReduce #5" in short[1] and "outside of NCCL" in short[1], short)
    check("AllReduce of 1 KiB: 10 times, 10" in short[2], short)
    page.run("document.querySelector('#short button').click()")
    page.wait_idle()
    check("AllReduce #5" in of(page, "#selected"), of(page, "#selected"))
    page.key("Escape")
    page.run("document.querySelector('#worst button').click()")
    page.wait_idle()
    check("AllReduce #5" in of(page, "#selected"), of(page, "#selected"))
    check("for rank 3 on node1 alone" in of(page, "#short") and "of bus bandwidth" in of(page, "#short"), of(page, "#short"))
    check(of(page, "#worst").startswith("By skew: from when the first rank began"), of(page, "#worst"))
    lines = page.run("""(() => { const d = document.getElementById('canvas').getContext('2d').getImageData(2, 30, 1, 70).data, found = [];
      for (let y = 0; y < 70; y++) if (d[4 * y] !== d[0] || d[4 * y + 1] !== d[1]) found.push(y + 30); return found; })()""")
    check(len(lines) == 2 and lines[1] == lines[0] + 1, f"not one line between two hosts beside the names of four ranks: {lines}")
    path = page.run("[...document.querySelectorAll('#path tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
    check(all(row[0].startswith("rank 3") for row in path[:3]) and "outside of NCCL, after AllReduce #4" in path[0][0], path)
    check("data moves" in path[-1][0] and 80 < usec(path[-1][1]) < 120, path)  # clocks of two hosts are known to 20 us
    check(pixels(page, RED, (0, 24, 990, 400)) > 50, "the critical path is not drawn")
    waits = page.run("[...document.querySelectorAll('#selected tbody tr')].map(r => [r.cells[0].textContent, r.cells[2].textContent])")
    check(waits[-1][0] == "rank 3" and usec(waits[-1][1]) == 0 and all(250 < usec(w) < 330 for _, w in waits[:3]), waits)


def queue(shown, folder):
    """An operation that begins late because the one before it runs so long says which."""
    os.makedirs(f"{folder}/queue")
    for number, ends in enumerate((190, 100)):
        rank = Rank(number, 2)
        rank.collective(1000, ends * 1000)
        rank.collective((ends + 10) * 1000, 260000, called=10000)
        rank.end().write(f"{folder}/queue")
    subprocess.run([tutti, "trace", "page", "-o", f"{folder}/queue/page.html", f"{folder}/queue"], check=True, timeout=100)
    shown.open(f"{folder}/queue/page.html")
    shown.run("document.querySelector('#worst button').click()")
    shown.wait_idle()
    found = shown.run("[...document.querySelectorAll('#path tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
    rows = [(row[0], round(usec(row[1]))) for row in found if "queued" in row[0] or "from its end" in row[0]]
    check(rows == [("rank 0: queued behind AllReduce #0", 180), ("rank 0: from its end to the first kernel", 10)], found)


def begins(shown, folder):
    """A run that starts for long opens on its operations; a narrow window still shows them; bytes name the type of their call."""
    os.makedirs(f"{folder}/begins")
    for number in range(2):
        rank = Rank(number, 2)
        rank.collective(900 * MS, 1000 * MS, "Broadcast", 1000, 0, called=10, moved=("ncclInt8", 4000))
        rank.end().write(f"{folder}/begins")
    subprocess.run([tutti, "trace", "page", "-o", f"{folder}/begins/page.html", f"{folder}/begins"], check=True, timeout=100)
    shown.open(f"{folder}/begins/page.html")
    row = (250, 24, 700, 26)
    seen = pixels(shown, PURPLE, row)
    shown.run("document.getElementById('canvas').focus()")
    shown.key("Home")
    check(seen > 5 * pixels(shown, PURPLE, row) > 0, f"the page opens on its empty start: {seen}")
    for again in ("document.getElementById('work').click()", None):
        shown.key("Home")
        shown.run(again) if again else shown.key("o")
        check(pixels(shown, PURPLE, row) == seen, "O and its button show the operations")
    shown.mouse("mouseMoved", *canvas_point(shown, 500, 36))
    shown.wait_idle()
    data = "4,000 x ncclInt8 (3.9 KiB), called with 1,000 x ncclFloat32"
    check(data in of(shown, "#tip"), of(shown, "#tip"))
    shown.click(*canvas_point(shown, 500, 36))
    shown.run("document.querySelector('#selected td button').click()")
    check(data in of(shown, "#selected"), of(shown, "#selected"))
    shown.ask("Emulation.setDeviceMetricsOverride", width=800, height=800, deviceScaleFactor=1, mobile=False)
    shown.open(f"{folder}/begins/page.html")
    room = shown.run("(() => { const c = canvas.getBoundingClientRect(), s = document.getElementById('side').getBoundingClientRect();"
                     "return [c.width, c.height, s.top >= c.bottom, document.documentElement.scrollWidth]; })()")
    check(room[0] > 700 and room[1] > 150 and room[2] and room[3] <= 800, f"a window of 800 pixels: {room}")
    shown.ask("Emulation.setDeviceMetricsOverride", width=1400, height=800, deviceScaleFactor=1, mobile=False)


def ends_nowhere(shown, folder):
    """A run that hangs says so first; who waits is hatched, who never came has an empty box and stands first among the stragglers."""
    for kind, want, operation in (
            ("nothing", "The run stopped in AllReduce #0: ranks 0, 1 and 3 waited 5.00 s for rank 2, which never began it: it has begun nothing.", "AllReduce #0"),
            ("open", "The run stopped in AllReduce #3: ranks 0, 1 and 3 have waited since 4.00 ms for rank 2, which never began it", "AllReduce #3"),
            ("chain", "The run stopped in AllReduce #3 of ranks 0 to 3: ranks 0 and 1 waited 5.00 s for ranks 2 and 3, which never began it: rank 2 "
             "waits in Broadcast #0", "AllReduce #3 of ranks 0 to 3"),
            ("circle", "Ranks wait for each other in a circle:", "AllReduce #3 of ranks 0 to 3"),
            ("unreceived", "Send #0: rank 1 ended it without rank 3, which never began its Recv", "Send #0")):
        os.makedirs(f"{folder}/stopped/{kind}")
        stopped(f"{folder}/stopped/{kind}", kind)
        subprocess.run([tutti, "trace", "page", "-o", f"{folder}/stopped/{kind}.html", f"{folder}/stopped/{kind}"], check=True, capture_output=True, timeout=100)
        shown.open(f"{folder}/stopped/{kind}.html")
        short = shown.run("[...document.querySelectorAll('#short li')].map(item => item.textContent)")
        check(short[0].startswith(want) or short[1].startswith(want), f"{kind}: {short}")
        check(not any("No rank stands out" in line or " 0\u00a0% of it" in line for line in short) or kind == "unreceived", f"{kind}: {short}")
        tables = {name: shown.run(f"[...document.querySelectorAll('#{name} tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
                  for name in ("stragglers", "worst")}
        first = tables["stragglers"][0]
        late = {"chain": ("rank 3",), "circle": ("rank 3", "rank 2"), "unreceived": ("rank 3",)}.get(kind, ("rank 2",))
        check(first[0] in late and first[1] == ("2" if kind == "chain" else "1") and first[5] in (operation, "Broadcast #0 of ranks 2 and 3"), f"{kind}: {tables}")
        if kind not in ("nothing", "open"):
            continue
        shown.run("document.querySelector('#short button').click()")
        seen = [(pixels(shown, BLUE, row), pixels(shown, WARN, row)) for row in [(760, 24 + 26 * r, 100, 26) for r in range(4)]]
        check(all(200 < blue < 1400 for blue, _ in seen[:2] + seen[3:]), f"{kind}: who waits is not hatched: {seen}")
        check(seen[2][0] == 0 and seen[2][1] > 50, f"{kind}: who never began has no box: {seen}")
        shown.mouse("mouseMoved", *canvas_point(shown, 800, 36))
        shown.wait_idle()
        check(f"{operation} at rank 0: waits" in of(shown, "#tip") and "for rank 2" in of(shown, "#tip"), of(shown, "#tip"))
        shown.click(*canvas_point(shown, 800, 88))
        check("It came to no end: ranks 0, 1 and 3" in of(shown, "#selected") and "never" in of(shown, "#selected"), of(shown, "#selected"))
        path = shown.run("[...document.querySelectorAll('#path tbody tr')].map(r => r.cells[0].textContent)")
        check(path == ["rank 2: begins nothing" if kind == "nothing" else "rank 2: outside of NCCL, after AllReduce #2; it never begins this"], path)


def queued(shown, folder):
    """What was queued behind an operation that was cut off is neither time inside of collectives nor drawn; who was in it is."""
    os.makedirs(f"{folder}/stopped/cut")
    stopped(f"{folder}/stopped/cut", "cut")
    subprocess.run([tutti, "trace", "page", "-o", f"{folder}/stopped/cut.html", f"{folder}/stopped/cut"], check=True, capture_output=True, timeout=100)
    shown.open(f"{folder}/stopped/cut.html")
    short = shown.run("[...document.querySelectorAll('#short li')].map(item => item.textContent)")
    check(short[0].startswith("The run stopped in AllReduce #3: all its ranks whose files are here began it; it did not come to its end by itself"), short)
    check(short[1:3] == ["AllReduce #4: queued behind AllReduce #3, which came to no end.", "2 more operations came to no end."], short)
    check("for 19.989 s in all; for 0\u00a0% of it" in short[3], short)  # four ranks for 4.997 s, and three calls of 100 us


def data_path(shown, folder):
    """From rank to rank, back from the one that ends last to the one that began last."""
    shown.open(f"{folder}/chain/page.html")
    shown.run("document.querySelector('#worst button').click()")
    shown.wait_idle()
    found = shown.run("[...document.querySelectorAll('#path tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
    want = [("rank 3", "until it sends", 1), ("rank 3", "sends step 0 to rank 0 on channel 1", 14), ("rank 0", "receives step 0 from rank 3", 5),
            ("rank 0", "from what it received to what it sends", 5), ("rank 0", "sends step 1 to rank 1 on channel 1", 15),
            ("rank 1", "receives step 1 from rank 0", 5), ("rank 1", "from what it received to what it sends", 5),
            ("rank 1", "sends step 2 to rank 2 on channel 1", 15), ("rank 2", "receives step 2 from rank 1", 5),
            ("rank 2", "from its last data to its end", 40)]
    rows = found[-len(want):]
    check(len(rows) == len(want) and all(row[0].startswith(who) and what in row[0] and abs(usec(row[1]) - long) < .01
                                         for row, (who, what, long) in zip(rows, want)), found)
    shown.open(f"{folder}/chain hosts/page.html")
    shown.run("document.querySelector('#worst button').click()")
    shown.wait_idle()
    text = of(shown, "#path")
    check("to rank 0 on channel 1, from node1 to node0" in text, text)


def channels_path(shown, folder):
    """Where no proxy works: the channel that ends last, from when on, and how long it is alone."""
    shown.open(f"{folder}/memory/page.html")
    shown.run("document.querySelector('#worst button').click()")
    shown.wait_idle()
    found = shown.run("[...document.querySelectorAll('#path tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
    want = [("rank 2: channel 1", "which ends last, has not begun", 20), ("rank 2: channel 1", "which ends last, works beside others", 80),
            ("rank 2: channel 1", "works alone: all other channels of all ranks have ended", 7)]
    rows = found[-len(want):]
    check(all(row[0].startswith(who) and what in row[0] and abs(usec(row[1]) - long) < .01 for row, (who, what, long) in zip(rows, want)), found)


def replays(shown, folder):
    """The call that a graph was captured from is no part of the path of its runs."""
    shown.open(f"{folder}/graph/page.html")
    shown.run("document.querySelector('#worst button').click()")
    shown.wait_idle()
    found = shown.run("[...document.querySelectorAll('#path tbody tr')].map(r => r.cells[0].textContent)")
    check(found[:2] == ["rank 3: outside of NCCL, after AllReduce #4", "rank 3: from the launch of its graph to the first kernel"], found)


def keyboard(page, path):
    page.open(path)
    for _ in range(40):  # by Tab alone
        page.key("Tab")
        if page.run("document.activeElement.id") == "canvas":
            break
    check(page.run("document.activeElement.id") == "canvas", "Tab does not lead to the drawing")
    page.key("ArrowDown")
    page.key("Enter")
    check(pixels(page, TEAL) > 100, "Enter does not unfold")
    page.key("]")
    check("AllReduce #0" in of(page, "#selected"), of(page, "#selected"))
    page.key("]")
    check("AllReduce #1" in of(page, "#selected"), of(page, "#selected"))
    before = pixels(page, BLUE, (250, 24, 700, 26))
    page.key("z")
    check(pixels(page, BLUE, (250, 24, 700, 26)) > 2 * before, "Z does not zoom")
    page.key("Home")
    check(abs(pixels(page, BLUE, (250, 24, 700, 26)) - before) < before / 4, "Home does not show the whole run")
    page.key("+")
    page.key("ArrowRight")
    page.key("-")
    page.key("Escape")
    check(of(page, "#selected").startswith("Nothing"), of(page, "#selected"))
    page.key("?")
    check(not page.run("document.getElementById('help').hidden"), "no help")
    page.key("?")
    page.key("/")
    check(page.run("document.activeElement.id") == "search", "/ does not search")


def searching(page):
    """The search has the focus."""
    for letter in "proxystep rank:2 #1":
        page.key(letter)
    check(of(page, "#hits") == "10 hits", of(page, "#hits"))
    page.key("Enter")
    check(of(page, "#hits") == "1 of 10 hits", of(page, "#hits"))
    shown = page.run("[...document.querySelectorAll('#selected tbody tr')].filter(r => r.cells.length == 4 && r.cells[0].textContent.startsWith('Proxy'))"
                     ".map(r => [...r.cells].map(c => c.textContent))")
    check(shown == [["ProxyStepSendGPUWait", "100 ns", "300 ns", ""], ["ProxyStepSendWait", "400 ns", "500 ns", "512"]], f"states: {shown}")
    check("ProxyStep 1" in of(page, "#selected") and "rank 2 on node1" in of(page, "#selected"), of(page, "#selected"))
    check(pixels(page, LILAC, (250, 24, 700, 500)) > 50, "the hit is not seen")
    check(pixels(page, LILAC, (250, 24, 700, 500)) < 7000, "it fills the drawing, and nothing says where it is")
    for parent in ("ProxyOp send", "AllReduce", "AllReduce", "GroupApi"):  # up to the call
        page.run("document.querySelector('#selected td button').click()")
        check(of(page, "#selected p") == parent, f"the parent is {of(page, '#selected p')}, not {parent}")
    for query, hits in ((">350us", "6 hits"), ("kernelch >395us", "1 hit"), ("kernelch >5ms", "0 hits"), ("nothing", "0 hits"), ("#3 coll", "4 hits")):
        page.run(f"(() => {{ const s = document.getElementById('search'); s.value = {json.dumps(query)}; s.dispatchEvent(new Event('input')); }})()")
        check(of(page, "#hits") == hits, f"{query}: {of(page, '#hits')}")


def mouse(page, path):
    page.open(path)
    before = pixels(page, BLUE, (250, 24, 700, 26))
    x, y = canvas_point(page, 270, 36)
    for _ in range(10):
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
        page.wait_idle()
    check(pixels(page, BLUE, (250, 24, 700, 26)) > 1.5 * before, "the wheel does not zoom")
    page.run("document.getElementById('fit').click()")
    page.click(*canvas_point(page, 40, 36))
    # types that are switched off are not drawn
    seen = pixels(page, TEAL)
    page.run("[...document.querySelectorAll('#types label')].find(l => l.textContent.includes('KernelCh')).firstChild.click()")
    check(seen > 100 and pixels(page, TEAL) == 0, "a type that is off is drawn")
    # one rank alone
    page.run("(() => { const s = document.getElementById('rank'); s.value = '2'; s.dispatchEvent(new Event('change')); })()")
    check(pixels(page, BLUE, (250, 24, 700, 26)) > 100 and pixels(page, BLUE, (250, 24 + 26, 700, 100)) == 0, "one rank alone")


def details(page, folder):
    """Where bars are joined, what they are made of is drawn and can be selected when one looks closely."""
    seen = {}
    for name in "bf":
        page.open(f"{folder}/{name}/page.html")
        page.run("document.querySelector('#worst button').click()")
        page.run("document.getElementById('unfold').click()")
        page.run("document.getElementById('canvas').focus()")
        page.key("z")
        seen[name] = pixels(page, TEAL)
        at = page.run(COLOUR_AT % (250, 24, 700, 300, *TEAL)) if name == "b" else None
        if at:
            page.click(*canvas_point(page, at[0] + 2, at[1] + 2))
            check(of(page, "#selected p") == "KernelCh" and "zoom in" not in of(page, "#selected"), of(page, "#selected"))
    check(seen["b"] > 100 and seen["b"] != seen["f"], f"the same with and without details: {seen}")


def communicators(page, folder):
    page.open(f"{folder}/d/page.html")
    check("in 2 communicators" in of(page, "#about"), of(page, "#about"))
    page.run("document.getElementById('unfold').click()")
    both = pixels(page, BLUE, (250, 24, 700, 26)), pixels(page, TEAL)
    page.run("(() => { const s = document.getElementById('comm'); s.value = '1'; s.dispatchEvent(new Event('change')); })()")
    one = pixels(page, BLUE, (250, 24, 700, 26)), pixels(page, TEAL)
    check(all(.3 * b < o < .7 * b for b, o in zip(both, one)), f"one communicator alone: {one} of {both}")


def bright(page):
    picture = browser.Picture(page.picture())
    points = [picture.at(x, y) for x in range(5, picture.width, 40) for y in range(5, picture.height, 40)]
    return sum(map(sum, points)) / len(points) / 3


def themes(page, path):
    page.scheme("light")
    page.open(path)
    light = bright(page)
    page.scheme("dark")
    dark = bright(page)
    check(light > 200 and dark < 70, f"brightness {light} and {dark}")
    page.run("document.getElementById('theme').click()")
    page.wait_idle()
    check(bright(page) > 200, "the switch does nothing")
    page.open(path)
    check(bright(page) < 70, "a page that begins dark")
    page.scheme("light")


def bounds(page, folder):
    page.open(f"{folder}/b/page.html")
    check("drawn together" in of(page, "#warning"), of(page, "#warning"))
    page.run("document.getElementById('unfold').click()")
    check(pixels(page, BLUE) > 20 and os.path.getsize(f"{folder}/b/page.html") < 400000, "a page of joined events")
    page.open(f"{folder}/c/page.html")
    check(page.run("document.querySelectorAll('img').length") == 0, "markup of a trace")
    check(HOSTILE in of(page, "#table"), of(page, "#table"))
    page.run("document.querySelector('#worst button').click()")
    check(page.run("document.querySelectorAll('script').length") == 2 and "img src=x" in of(page, "#selected"), "hostile texts")


with tempfile.TemporaryDirectory() as folder:
    the_file(folder)
    page(f"{folder}/chain", operations=10, host="one", chain=True)
    page(f"{folder}/chain hosts", operations=10, chain=True)
    page(f"{folder}/memory", operations=10, host="one", memory=True)
    page(f"{folder}/graph", operations=10, host="one", graph=True)
    if mode == "browser":
        path = browser.find()
        if not path:
            print("SKIP: no Chromium (package chromium)")
            sys.exit(77)
        page = browser.Browser(path)
        try:
            shows(page, f"{folder}/a/page.html")
            explains(page)
            queue(page, folder)
            begins(page, folder)
            ends_nowhere(page, folder)
            queued(page, folder)
            data_path(page, folder)
            channels_path(page, folder)
            replays(page, folder)
            keyboard(page, f"{folder}/a/page.html")
            searching(page)
            mouse(page, f"{folder}/a/page.html")
            themes(page, f"{folder}/a/page.html")
            communicators(page, folder)
            details(page, folder)
            bounds(page, folder)
            faults = [fault for fault in page.faults if "getImageData" not in fault]  # that is what pixels() does
            check(not faults, faults)
            check(all(address.startswith("file://") for address in page.requests), page.requests)
        finally:
            page.close()
print("good")
