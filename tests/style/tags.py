#!/usr/bin/env python3
"""One tag names one type: no struct, union or enum of ours is defined twice, whatever the file."""
import collections, re, style

where = collections.defaultdict(list)
for path in style.files(style.CODE):
    for found in re.finditer(r"^(?:typedef )?(?:struct|union|enum) (tt_\w+)\s*\{", style.strip_comments(style.read(path)),
                             re.M):
        where[found[1]].append(path)
findings = [(path, f"{path}: {tag} is also defined in {', '.join(p for p in paths if p != path) or 'the same file'}")
            for tag, paths in sorted(where.items()) if len(paths) > 1 for path in sorted(set(paths))]
style.report("tags", f"{len(where)} types of ours", findings)
