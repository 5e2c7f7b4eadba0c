"""Python with some of the installed packages alone, as a server that runs code in forks of itself, and as a program.

``python plain_server.py HIDDEN.json SERVE`` answers lines of JSON; with ``-m MODULE``, ``-c CODE`` or a script in place
of ``SERVE`` it runs that. It needs the standard library only, so that nothing hidden is imported before.
"""

import contextlib
import importlib.machinery
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

_PRELOADED = ("sklearn.datasets", "sklearn.model_selection", "sklearn.pipeline", "pyarrow.csv", "pyarrow.parquet",
              "qmedoid.cli.fit", "qmedoid.cli.score", "qmedoid.cli.explain", "qmedoid.cli.report",
              "qmedoid.estimators.medoid")  # fmt: skip
# What makes a line of the shell more than one command with arguments.
_OF_THE_SHELL = re.compile(r"[|<>;&$`()]|\b(if|for|while)\b")


class Hiding:
    """A finder of modules that finds neither modules nor distributions that are hidden."""

    hidden: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in Hiding.hidden[0] else self.finder.find_spec(name, path, target)

    def find_distributions(self, *arguments, **options):
        find = getattr(self.finder, "find_distributions", None)
        found = () if find is None else find(*arguments, **options)
        return (one for one in found if re.sub(r"[-_.]+", "-", one.name).lower() not in Hiding.hidden[1])

    def __getattr__(self, name):
        return getattr(self.finder, name)


def hide(modules, distributions):
    """Hide these; further calls change what is hidden."""
    Hiding.hidden = frozenset(modules), frozenset(distributions)
    if not any(isinstance(finder, Hiding) for finder in sys.meta_path):
        sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]
    importlib.invalidate_caches()


def run_blocks(blocks, page, quick, stand_ins):
    """Run blocks of a page in order, those of Python with shared names; fits are quick where nobody looks at numbers.

    A command that names a file which is not there gets the one of the folder of stand-ins.
    """
    names = {"__name__": "page"}
    with quick_fits() if quick else contextlib.nullcontext():
        for language, line, code, shown in blocks:
            where = f"{page}, line {line}"
            print(f"--- {where} ({language})", flush=True)
            if language == "python":
                value = run_python(code, names, where)
                if shown is not None and str(value) != shown:
                    sys.exit(f"The block at line {line} of {page} shows another value than\n{value}")
            else:
                for command in code:
                    stand_in(command, Path(stand_ins))
                    run_command(command)


def stand_in(command, files):
    for file in files.iterdir():
        if re.search(rf"(?<![\w.-]){re.escape(file.name)}(?![\w.-])", command) and not Path(file.name).exists():
            shutil.copytree(file, file.name) if file.is_dir() else shutil.copy(file, file.name)


@contextlib.contextmanager
def quick_fits():
    """Few trees, and few steps of circuits."""
    from unittest import mock

    from tests.few_trees import few_trees

    from qmedoid import VariationalClassifier

    with few_trees(), mock.patch.dict(VariationalClassifier.__init__.__kwdefaults__, n_steps=40):
        yield


def run_python(code, names, where):
    """Run a block; its value is that of its last statement where that is an expression."""
    import ast

    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), where, "eval"), names)


def run_command(command):
    """A line of the shell; a command of ours in a fork, with everything imported."""
    print(f"$ {command}", flush=True)
    if not command.startswith("qmedoid ") or _OF_THE_SHELL.search(re.sub(r"'[^']*'|#.*$", "", command)):
        script = 'qmedoid() { "$PYTHON" -m qmedoid "$@"; }\nset -e\n' + command
        subprocess.run(["sh", "-c", script], env=os.environ | {"PYTHON": sys.executable}, check=True)
        return
    code = in_fork(lambda: run_ours(shlex.split(command, comments=True)))
    if code:
        sys.exit(f"The command ended with {code}: {command}")


def run_ours(words):
    from qmedoid.cli import main

    sys.argv = words
    main()


def in_fork(call):
    """Call in a fork of this process; its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            call()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            if isinstance(stop.code, str):
                print(stop.code, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def answer(request):
    """Run what a line asks for, in its folder, with its packages; what it printed, and its exit code."""

    def run():
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
        hide(*request["hidden"])
        sys.executable = request["executable"]
        os.chdir(request["folder"])
        os.environ.update(request["environment"])
        if "blocks" in request:
            run_blocks(request["blocks"], request["page"], request["quick"], request["stand_ins"])
        else:
            exec(compile(request["code"], request["page"], "exec"), {"__name__": "page"})

    with tempfile.TemporaryFile() as printed:
        code = in_fork(run)
        printed.seek(0)
        return {"code": code, "printed": printed.read().decode(errors="replace")}


def serve():
    answers = os.fdopen(os.dup(1), "w")
    for name in _PRELOADED:
        __import__(name)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


def run_program(words):
    """What Python does with these words."""
    sys.path[0] = ""
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    hide(*json.loads(Path(sys.argv[1]).read_text()))
    serve() if sys.argv[2:] == ["SERVE"] else run_program(sys.argv[2:])
