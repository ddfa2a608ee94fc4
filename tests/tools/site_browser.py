#!/usr/bin/env python3
"""The documentation's site as its reader opens it, from a folder and in a browser: nothing fails, nothing is asked for from
elsewhere, the search finds, the dark scheme is dark. Exit 77 (skipped) where mkdocs 1.4 or the browser is not installed.
usage: site_browser.py SOURCE_DIR"""
import os, re, shutil, subprocess, sys, tempfile, time

import browser

SOURCE = os.path.abspath(sys.argv[1])
faults = []


def check(what, good, seen=""):
    if not good:
        faults.append(what)
        print(f"FAILED: {what}: {str(seen)[:1500]}")


def mkdocs():
    for tool in ("/usr/bin/mkdocs", shutil.which("mkdocs")):
        version = tool and os.path.exists(tool) and subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
        number = re.search(r"version (\d+)\.(\d+)", version or "")
        if number and (int(number[1]), int(number[2])) >= (1, 4):
            return tool
    return None


def search(page, folder, words):
    """Links of what is found, best first, and what is said above them."""
    page.ask("Page.navigate", url=f"file://{folder}/search.html?q={words}")
    until = time.monotonic() + 60
    while time.monotonic() < until:
        told = page.run("(document.querySelector('#mkdocs-search-results p') || {}).textContent || ''")
        if told:
            break
        time.sleep(0.05)
    return told, page.run("[...document.querySelectorAll('#mkdocs-search-results article a')].map((a) => a.getAttribute('href'))")


def ground(page):
    """The brightest of the page's background colours."""
    colours = page.run("['body', '.wy-nav-content', '.rst-content pre', '.wy-nav-side'].map((part) => "
                       "getComputedStyle(document.querySelector(part)).backgroundColor)")
    return max(max(int(n) for n in re.findall(r"\d+", colour)[:3]) for colour in colours if not colour.endswith(", 0)"))


def main(folder):
    page = browser.Browser(browser.find())
    try:
        for name in ("index", "topology", "troubleshooting", "subjects", "readers/programs", "rooms/net"):
            page.open(f"{folder}/{name}.html")
            wide = page.run("document.documentElement.scrollWidth - window.innerWidth")
            check(f"{name} fits the window", wide <= 0, wide)
        page.open(f"{folder}/topology.html")
        check("light", ground(page) > 200)
        page.scheme("dark")
        check("dark", ground(page) < 80, ground(page))
        check("dark code is readable", page.run("getComputedStyle(document.querySelector('.rst-content pre code')).color") == "rgb(228, 232, 238)")
        page.scheme("light")
        told, links = search(page, folder, "TUTTI_WATCHDOG")
        check("a variable", "section" in told and any("reliability.html#" in link for link in links), (told, links))
        told, links = search(page, folder, "strict+mode")
        check("a title comes first", links and "strict" in links[0], (told, links[:5]))
        told, links = search(page, folder, "--clique")
        check("an option", links and "topology.html" in links[0], (told, links[:5]))
        told, links = search(page, folder, "TUTTI_WATCHDOG+unheardofword")
        check("what has a part of the words", "with 1 of 2 words" in told and links, told)
        told, links = search(page, folder, "%3Cimg%20src=x%3E")
        check("words are no markup", not links and page.run("document.querySelector('#mkdocs-search-results img')") is None, told)
        check("no faults", not page.faults, page.faults)
        check("nothing from elsewhere", all(url.startswith("file://") for url in page.requests), page.requests)
    finally:
        page.close()


if not mkdocs() or not browser.find():
    print("SKIP: mkdocs 1.4 and chromium are needed (Debian: mkdocs, chromium)")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([mkdocs(), "build", "--strict", "--quiet", "--config-file", f"{SOURCE}/mkdocs.yml", "--site-dir", folder], check=True)
    main(folder)
print(f"site: {len(faults)} failed")
sys.exit(1 if faults else 0)
