"""What the site needs and no page holds: the commands, words to search for, lists of folders, formulas, the way in."""

import shutil
from html import escape
from pathlib import Path
from textwrap import indent

import commands
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from qmedoid.estimators.recipes import Recipe

INNER = {*vars(Recipe), *Recipe.__annotations__}
"""Members that the reference of the interface leaves out."""
COMMANDS = "<!-- the commands -->"
WORDS = {
    "docs/faq": "pipeline; grid search; cross-validation; sample weight; class weight; resampling",
    "docs/limits": "regression; multilabel; text; limits",
    "docs/how-to/operating-point": "threshold; cut-off; operating point; cost",
    "docs/how-to/rare-events": "imbalanced; imbalanced classes; fraud; anomaly",
    "docs/how-to/multiclass": "multiclass; multi-class; one-vs-rest",
    "docs/how-to/deploy": "deploy; deployment; serve; production; REST",
    "docs/how-to/monitor": "monitor; monitoring; drift; retrain; recalibrate",
    "docs/how-to/explain": "SHAP; counterfactual; reasons; explainability",
    "docs/how-to/export": "SQL; ONNX; JavaScript",
    "docs/how-to/engines": "Spark; Ray; DuckDB; Polars",
    "docs/how-to/other-frequencies": "prior shift; label shift; prevalence",
    "docs/how-to/files": "missing values; categorical; dates",
    "docs/how-to/beyond-memory": "Dask; out-of-core; large data",
    "docs/saved-models": "feature importance; save; load; privacy; pickle",
    "docs/quality": "benchmark; CatBoost; LightGBM; accuracy",
    "docs/sum": "default; boosted trees; SumClassifier",
}
"""Words that people search for and the page that answers them; the search of the site shows it first."""
FOLDERS = {"examples": "docs/gallery/index"}
"""Folders that a page of the site shows; of others a link leads to a list of their files."""
PAGE = '<!doctype html>\n<meta charset="utf-8">\n<title>{title}</title>\n{body}\n'


def add_commands(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Put the reference of the commands in its place."""
    if COMMANDS in source[0]:
        source[0] = source[0].replace(COMMANDS, commands.markdown())


def add_words(_app: Sphinx, name: str, source: list[str]) -> None:
    """Put the words of a page below its title, as entries of the index."""
    if name in WORDS:
        title, _, text = source[0].partition("\n")
        entries = "\n".join(f"! single: {word}" for word in WORDS[name].split("; "))
        source[0] = f"{title}\n\n```{{eval-rst}}\n.. index::\n{indent(entries, '   ')}\n```\n{text}"


def link_folders(app: Sphinx, tree: nodes.document) -> None:
    """Lead links to folders of the repository to the page that shows them, or to copies of their files with a list."""
    if app.builder.name != "html":
        return
    root, page = Path(app.srcdir).resolve(), app.env.current_document.docname
    for link in [one for one in tree.findall(pending_xref) if one["reftype"] == "myst"]:
        folder = ((root / page).parent / link["reftarget"]).resolve()
        if folder.is_dir() and folder.is_relative_to(root):
            inside = folder.relative_to(root).as_posix()
            if inside not in FOLDERS:
                copy_folder(folder, Path(app.outdir) / inside)
            target = app.builder.get_relative_uri(page, FOLDERS.get(inside, f"{inside}/index"))
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
    app.connect("source-read", add_words)
    app.connect("doctree-read", link_folders)
    app.connect("autodoc-skip-member", skip_inner)
    app.connect("build-finished", write_entry)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
