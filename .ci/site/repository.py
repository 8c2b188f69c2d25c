"""Links of the documentation lead into the repository: on GitHub as they stand, in the site to pages that this makes.

The README is the site's first page. Any other file or directory outside of docs/ that a page links becomes a page below repository/:
Markdown as it is, sources with numbered lines, directories as lists. So do the files that those pages link.
"""

import logging
import os
import posixpath
import re

from mkdocs.structure.files import File, InclusionLevel

log = logging.getLogger("mkdocs.hooks.repository")

LANGUAGES = {
    ".cu": "cuda", ".cuh": "cuda", ".c": "c", ".h": "cpp", ".cpp": "cpp", ".rs": "rust", ".toml": "toml", ".yml": "yaml", ".json": "json",
    ".lua": "lua", ".el": "elisp", ".py": "python", ".mjs": "javascript", ".ts": "typescript", ".sh": "bash",
}
FENCE = re.compile(r"^\s*(```+|~~~+)")
CODE = re.compile(r"(`+)(?:.+?)\1")
LINK = re.compile(r"(\]\()([^)\s]+)((?:\s+\"[^\"]*\")?\))|(<img\s[^>]*?src=\")([^\"]+)(\")")

# Pages of the site by their address there: the path in the repository.
paths = {}
root = ""


def address(path):
    """Where a path of the repository is in the site."""
    if path == "README.md":
        return "index.md"
    if path == "docs/README.md":
        return "contents.md"
    inside = path.startswith("docs/")
    name = path[len("docs/"):] if inside else "repository/" + path.lstrip(".")
    full = os.path.join(root, path)
    if os.path.isdir(full):
        return address(path + "/README.md") if os.path.exists(os.path.join(full, "README.md")) else name.rstrip("/") + "/index.md"
    if inside or path.endswith(".md") or text_of(full) is None:
        return name
    return name + ".md"


def text_of(full):
    """A file's text; None if it is none."""
    try:
        with open(full, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        return None


def target(path, link):
    """The path in the repository to which a link of the page at `path` leads, and the anchor; None where it leads elsewhere or nowhere."""
    if re.match(r"[a-z][a-z+.-]*:|#|/", link):
        return None
    link, _, anchor = link.partition("#")
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    if found.startswith("..") or found == "." or not os.path.exists(os.path.join(root, found)):
        return None
    return found, anchor


def outside_code(markdown, change):
    """The text with `change` applied to what isn't code."""
    lines, fence = [], None
    for line in markdown.split("\n"):
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = None
        elif mark:
            fence = mark[1]
        else:
            # Code in a link's text stays where it is: only the address is looked at.
            codes = []
            hidden = CODE.sub(lambda found: codes.append(found[0]) or f"\0{len(codes) - 1}\0", line)
            line = re.sub("\0(\\d+)\0", lambda found: codes[int(found[1])], change(hidden))
        lines.append(line)
    return "\n".join(lines)


def links(markdown):
    found = []
    outside_code(markdown, lambda line: found.extend(m[2] or m[5] for m in LINK.finditer(line)) or line)
    return found


def page_of(path):
    """The Markdown of a page that the site has of a path outside of docs/."""
    full = os.path.join(root, path)
    if os.path.isdir(full):
        entries = sorted(entry for entry in os.listdir(full) if not entry.startswith("."))
        return f"# {path}\n\n" + "".join(f"- [{entry}]({entry})\n" for entry in entries)
    text = text_of(full)
    if text is None or path.endswith(".md"):
        return text
    language = LANGUAGES.get(posixpath.splitext(path)[1]) or ("bash" if text.startswith("#!") else "text")
    fence = "`" * max([3] + [len(run) + 1 for run in re.findall("`+", text)])
    return f'# {path}\n\n{fence}{language} linenums="1"\n{text.rstrip()}\n{fence}\n'


def on_config(config):
    global root
    root = os.path.normpath(os.path.join(os.path.dirname(config.config_file_path), "../.."))
    order = links(text_of(os.path.join(config.docs_dir, "README.md")))
    named = []

    def expand(entries):
        """The navigation, with what `DIRECTORY/*` stands for."""
        result = []
        for entry in entries:
            if isinstance(entry, dict):
                ((title, value),) = entry.items()
                result.append({title: expand(value) if isinstance(value, list) else value})
            elif entry.endswith("/*"):
                directory = entry[:-2]
                pages = [f"{directory}/{name}" for name in sorted(os.listdir(os.path.join(config.docs_dir, directory)))]
                pages = [page for page in pages if page.endswith(".md") and page not in named]
                pages.sort(key=lambda page: order.index(page) if page in order else len(order))
                # An id is short enough for the navigation; other pages have titles.
                short = directory in ("diagnostics", "rewrites")
                result.extend({posixpath.basename(page)[:-3]: page} if short else page for page in pages)
            else:
                result.append(entry)
        return result

    def pages(entries):
        for entry in entries:
            value = next(iter(entry.values())) if isinstance(entry, dict) else entry
            yield from pages(value) if isinstance(value, list) else [value]

    named.extend(pages(config.nav))
    config.nav = expand(config.nav)
    seen = list(pages(config.nav))
    for page in sorted(set(seen)):
        if seen.count(page) > 1:
            log.warning(f"The navigation has '{page}' {seen.count(page)} times.")
    return config


def on_files(files, config):
    paths.clear()
    files.remove(files.get_file_from_path("README.md"))
    made = File.generated(config, "site.css", content=text_of(os.path.join(root, ".ci/site/site.css")))
    files.append(made)
    waiting = ["README.md", "docs/README.md"]
    waiting += ["docs/" + file.src_uri for file in files.documentation_pages()]
    while waiting:
        path = waiting.pop()
        uri = address(path)
        if uri in paths:
            continue
        paths[uri] = path
        full = os.path.join(root, path)
        if files.get_file_from_path(uri):
            if not path.endswith(".md"):
                continue
            text = text_of(full)
        else:
            text = page_of(path)
            if text is None:
                with open(full, "rb") as file:
                    files.append(File.generated(config, uri, content=file.read()))
                continue
            level = InclusionLevel.INCLUDED if uri in ("index.md", "contents.md") else InclusionLevel.NOT_IN_NAV
            files.append(File.generated(config, uri, content=text, inclusion=level))
        # A directory's entries are linked as if from within it.
        base = path + "/" if os.path.isdir(full) else path
        waiting += [found[0] for found in (target(base, link) for link in links(text)) if found]
    return files


def on_page_markdown(markdown, page, config, files):
    path = paths[page.file.src_uri]
    base = path + "/" if os.path.isdir(os.path.join(root, path)) else path
    if not path.endswith(".md"):
        # Who searches wants pages about a word, and not each source that has it.
        page.meta["search"] = {"exclude": True}

    def rewritten(link):
        found = target(base, link)
        if not found:
            return link
        to, anchor = found
        uri = address(to)
        if anchor and uri != to and re.fullmatch(r"L\d+", anchor):
            anchor = f"__codelineno-0-{anchor[1:]}"
        relative = posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or ".")
        return relative + ("#" + anchor if anchor else "")

    def change(line):
        return LINK.sub(lambda m: m[1] + rewritten(m[2]) + m[3] if m[1] else m[4] + rewritten(m[5]) + m[6], line)

    return outside_code(markdown, change)


def on_page_content(html, page, config, files):
    # Numbers of lines are anchors, too; MkDocs looks for anchors before sources are highlighted.
    page.present_anchor_ids |= set(re.findall(r'id="(__codelineno-\d+-\d+)"', html))
    return html
