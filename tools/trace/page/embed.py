#!/usr/bin/env python3
"""The page's fixed text as constants in C. usage: embed.py page.html page.css SCRIPT...

In page.html, @style@, @script@ and @policy@ are replaced: the scripts become one, and the policy allows it and the style by
their hashes and nothing else. @data@ is where the tool writes the run. Lines stay below what struct out takes at once."""
import base64, hashlib, io, sys

html, style, *scripts = (open(path, encoding="utf-8").read() for path in sys.argv[1:])
style = "\n" + style
script = "\n'use strict';\n(() => {\n" + "".join(scripts) + "})();\n"
if "</script" in script or "</style" in style:
    sys.exit("embed.py: a tag would end in the middle of its text")


def allowed(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


policy = f"default-src 'none'; style-src {allowed(style)}; script-src {allowed(script)}; base-uri 'none'; form-action 'none'"
sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
html = html.replace("@policy@", policy).replace("@style@", style).replace("@script@", script)
head, data, tail = html.partition("@data@\n")
if not data:
    sys.exit("embed.py: no @data@ in the page")
print("/* Made by tools/trace/page/embed.py. */\n#include \"trace/page/source.h\"\n\n#include <stddef.h>\n")
for name, text in (("head", head), ("tail", tail)):
    print(f"const char *const page_source_{name}[] = {{")
    for line in text.splitlines(keepends=True):
        if len(line) > 2000:
            sys.exit(f"embed.py: a line of {len(line)} characters: {line[:60]}")
        quoted = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("?", "\\?")
        print(f'    "{quoted}",')
    print("    NULL,\n};")
