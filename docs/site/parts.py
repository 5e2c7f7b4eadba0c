"""What the site needs and no page holds: the commands, lists of folders, formulas, the inner names, the way in."""

import shutil
from html import escape
from pathlib import Path

import commands
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from qmedoid.estimators._methods import MethodMixin

INNER = {*vars(MethodMixin), *MethodMixin.__annotations__} - {"table_model"}
"""Members that the reference of the interface leaves out."""
COMMANDS = "<!-- the commands -->"
PAGE = '<!doctype html>\n<meta charset="utf-8">\n<title>{title}</title>\n{body}\n'


def add_commands(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Put the reference of the commands in its place."""
    if COMMANDS in source[0]:
        source[0] = source[0].replace(COMMANDS, commands.markdown())


def link_folders(app: Sphinx, tree: nodes.document) -> None:
    """Lead links to folders of the repository to copies of their files with a list of them."""
    if app.builder.name != "html":
        return
    root, page = Path(app.srcdir).resolve(), app.env.current_document.docname
    for link in [one for one in tree.findall(pending_xref) if one["reftype"] == "myst"]:
        folder = ((root / page).parent / link["reftarget"]).resolve()
        if folder.is_dir() and folder.is_relative_to(root):
            inside = folder.relative_to(root).as_posix()
            copy_folder(folder, Path(app.outdir) / inside)
            target = app.builder.get_relative_uri(page, f"{inside}/index")
            link.replace_self(nodes.reference("", "", *link.children, internal=True, refuri=target))


def copy_folder(folder: Path, copy: Path) -> None:
    """Copy the files of a folder, without those of folders in it, and write a page that lists them."""
    copy.mkdir(parents=True, exist_ok=True)
    names = sorted(file.name for file in folder.iterdir() if file.is_file())
    for name in names:
        shutil.copy(folder / name, copy / name)
    rows = "\n".join(f'<li><a href="{escape(name)}">{escape(name)}</a></li>' for name in names)
    body = f"<h1>{escape(folder.name)}</h1>\n<ul>\n{rows}\n</ul>"
    (copy / "index.html").write_text(PAGE.format(title=escape(folder.name), body=body), encoding="utf-8")


def write_entry(app: Sphinx, exception: Exception | None) -> None:
    """Write ``index.html``, which leads to the first page."""
    if exception is None and app.builder.name == "html":
        first = f"{app.config.root_doc}.html"
        body = f'<meta http-equiv="refresh" content="0; url={first}">\n<a href="{first}">{app.config.project}</a>'
        page = PAGE.format(title=app.config.project, body=body)
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def skip_inner(_app: Sphinx, _what: str, name: str, value: object, _skip: bool, _options: object) -> bool | None:
    """Leave out what estimators have from scikit-learn, and for each other: it is no part of the interface."""
    of_sklearn = (getattr(value, "__module__", None) or "").startswith("sklearn.") or name.endswith("_request")
    return True if of_sklearn or name in INNER else None


def write_math(writer: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers show without a script."""
    writer.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the parts."""
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
    app.connect("source-read", add_commands)
    app.connect("doctree-read", link_folders)
    app.connect("autodoc-skip-member", skip_inner)
    app.connect("build-finished", write_entry)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
