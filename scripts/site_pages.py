"""What mkdocs is given besides the pages (mkdocs.yml names this file as a hook): the index, made from what the pages say,
and the search's data as a script, because a page that was opened from a folder may not read other files."""
import glob, json, os, re

from markdown.extensions.toc import slugify

MOST = 6  # places that one entry of the index names
KINDS = [
    ("Variables", re.compile(r"^(?:NCCL|TUTTI|CUDA|NVTX)_[A-Z0-9_]+\b")),
    ("Commands", re.compile(r"^tutti (?:doctor|env|perf|ras|run|tune|verify|version|(?:plugin|program|topo|trace)(?: [a-z]+)?)\b")),
    ("Functions", re.compile(r"^(?:nccl|cuda|cu|tutti)[A-Z]\w+\b")),
]


def sections(text):
    """[(title, anchor, body)] of a page; code blocks belong to the body."""
    found, used, inside = [("", "", [])], {}, False
    for line in text.splitlines():
        inside ^= line.startswith("```")
        heading = None if inside else re.match(r"(#+) (.*)", line)
        if not heading:
            found[-1][2].append(line)
            continue
        title = heading[2].strip()
        anchor = slugify(re.sub(r"[`*]", "", title), "-")
        used[anchor] = used.get(anchor, -1) + 1
        found.append((title, anchor + (f"_{used[anchor]}" if used[anchor] else ""), []))
    return [(title, anchor, "\n".join(body)) for title, anchor, body in found if title]


def words_of(body):
    """What stands in code, in a line or in a block."""
    for code in re.findall(r"```.*?```", body, flags=re.S):
        yield from (part for line in code.splitlines()[1:-1] for part in re.split(r"(?<=[\s(=\"'$])(?=\S)", line))
        yield from code.splitlines()[1:-1]
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", body, flags=re.S))


def sorted_as(title):
    return re.sub(r"[\W_]", "", re.sub(r"^(a|an|the) ", "", title.lower()))


def index_of(pages):
    """pages: [(path, name in the list, text)]. The index as Markdown."""
    subjects, entries = [], {kind: {} for kind, _ in KINDS}
    for path, name, text in pages:
        for k, (title, anchor, body) in enumerate(sections(text)):
            place = (f"{name}: {title}" if k else name, f"{path}#{anchor}")
            subjects.append((title, f"{path}#{anchor}", name if k else ""))
            for word in words_of(body):
                for kind, pattern in KINDS:
                    term = pattern.match(word.strip())
                    if term:
                        places = entries[kind].setdefault(term[0], {})
                        times, first = places.get(path, (0, place))
                        places[path] = (times + 1, first)
    out = ["## Subjects", ""]
    for title, link, of in sorted(subjects, key=lambda row: sorted_as(row[0])):
        out.append(f"- [{title}]({link})" + (f" ({of})" if of else ""))
    for kind, terms in entries.items():
        out += ["", f"## {kind}", ""]
        for term, places in sorted(terms.items()):
            best = sorted(places.values(), key=lambda row: -row[0])[:MOST]
            out.append(f"- `{term}`: " + "; ".join(f"[{title}]({link})" for _, (title, link) in best))
    return "\n".join(out) + "\n"


def with_links(markdown, page, files):
    """`docs/NAME.md`, as the sources name a page, becomes a link to it; not in blocks of code, and not inside of a link."""
    folder = os.path.dirname(page.file.src_path)
    known = {file.src_path for file in files.documentation_pages()}
    out, inside = [], False
    for line in markdown.splitlines():
        inside ^= line.lstrip().startswith("```")
        if not inside:
            line = re.sub(r"(?<!\[)`docs/([\w/-]+\.md)`", lambda name: f"[{name[0]}]({os.path.relpath(name[1], folder or '.')})"
                          if name[1] in known else name[0], line)
        out.append(line)
    return "\n".join(out) + "\n"


def on_page_markdown(markdown, page, config, files):
    if page.file.src_path != "subjects.md":
        return with_links(markdown, page, files)
    pages = [file for file in files.documentation_pages() if file.src_path not in ("index.md", "subjects.md")]
    texts = []
    for file in pages:
        with open(file.abs_src_path, encoding="utf-8") as source:
            texts.append((file.src_path, file.page.title, source.read()))
    return markdown + "\n" + index_of(texts)


def on_page_content(html, page, config, files):
    """Short words of code are not broken over lines, which browsers do behind each hyphen."""
    return re.sub(r"(?<!<pre>)<code>([^<]{1,28})</code>", r'<code class="short">\1</code>', html)


def with_scripts_at_hand(output, config):
    """Debian's theme asks for scripts by names that it does not have: another jquery, one for browsers of old."""
    def mend(match):
        folder, name = match[2], match[3]
        for theme in config["theme"].dirs:
            if os.path.exists(os.path.join(theme, "js", name)):
                return match[0]
            others = sorted(glob.glob(os.path.join(theme, "js", name.split("-")[0] + "-*.js")))
            if others:
                return f'{match[1]}{folder}{os.path.basename(others[0])}"{match[4]}</script>'
        return ""
    return re.sub(r'(<script src=")([^"]*\bjs/)([^"/]+)"([^>]*>)</script>', mend, output)


def on_post_page(output, page, config):
    return with_scripts_at_hand(output, config)


def on_post_template(output_content, template_name, config):
    return with_scripts_at_hand(output_content, config)


def closed_up(text):
    """The search's text has spaces around each word of code, also where a bracket or a comma follows."""
    return re.sub(r" ([),.;:])", r"\1", re.sub(r"\( ", "(", text))


def on_post_build(config):
    folder = os.path.join(config["site_dir"], "search")
    with open(os.path.join(folder, "search_index.json"), encoding="utf-8") as source:
        rows = json.load(source)["docs"]
    whole = {row["location"]: row["title"] for row in rows if "#" not in row["location"]}
    rows = [[row["location"], row["title"], whole.get(row["location"].split("#")[0], ""), closed_up(row["text"])]
            for row in rows if "#" in row["location"] and not row["location"].startswith("subjects.html")]
    with open(os.path.join(folder, "sections.js"), "w", encoding="utf-8") as out:
        out.write(f"const sections = {json.dumps(rows)};\n")
