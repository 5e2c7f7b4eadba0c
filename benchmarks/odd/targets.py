"""Odd targets, columns that give them away, and people who come back."""

from collections.abc import Iterator

import numpy as np

from benchmarks.odd.base import N_ROWS, Odd, base, draws, is_yes, plain_file, with_cells


def _target(name: str, classes: list, says: str = "", seen: list | None = None, both: bool = False) -> Odd:
    seen = classes if seen is None else seen
    return Odd(name, plain_file(with_cells(y=classes)), {"y": seen} if seen else None, says, both=both)


def targets() -> Iterator[Odd]:
    """Classes in odd words, numbers, and counts."""
    truth = is_yes()
    for word in ("None", "NA", "null", "nan", "-", "?"):
        classes = ["Attack" if one else word for one in truth]
        yield _target(
            f"a class called {word}",
            classes,
            f"'?{word.replace('?', '[?]')}'?.*missing|missing.*{word.replace('?', '[?]')}",
        )
        three = [("A", word, "B")[(i + one) % 3] for i, one in enumerate(truth)]
        yield _target(
            f"one of three classes called {word}",
            three,
            f"missing.*{word.replace('?', '[?]')}|{word.replace('?', '[?]')}.*missing",
        )
    words = [("true", "false")[one] for one in truth]
    yield _target("truth values as classes", words)
    pairs = {"0 and 1": "0 1", "1 and 2": "1 2", "0.0 and 1.0": "0 1", "-1 and 1": "-1 1", "x and z": "x z"}
    for name, words in pairs.items():
        pair = words.split()
        classes = [pair[one] for one in truth]
        written = [f"{one}.0" for one in classes] if name == "0.0 and 1.0" else classes
        yield _target(f"classes {name}", written, seen=classes)
    some = [None if i % 6 == 0 else one for i, one in enumerate(base()["y"])]
    yield _target("blanks in the target", some, "no class", both=True)
    yield _target(
        "blanks around classes",
        [f" {one}" if i % 3 == 0 else one for i, one in enumerate(base()["y"])],
        seen=base()["y"],
    )
    yield _target(
        "classes that differ by case",
        [one.upper() if i % 5 == 0 else one for i, one in enumerate(base()["y"])],
        "case",
        seen=[],
    )
    invisible = [f"{one}\u200b" if i % 5 == 0 else one for i, one in enumerate(base()["y"])]
    yield _target("invisible letters in classes", invisible, "look|alike|invisible|differ", seen=base()["y"])
    hard = [f"{one}\u00a0" if i % 5 == 0 else one for i, one in enumerate(base()["y"])]
    yield _target("hard blanks behind classes", hard, seen=base()["y"])
    points = [f"{one}." if i % 5 == 0 else one for i, one in enumerate(base()["y"])]
    yield _target("points behind classes", points, "look|alike|differ", seen=base()["y"])
    yield _target("one class", ["yes"] * N_ROWS, "one class", seen=[])
    yield _target("no class at all", [""] * N_ROWS, "no class|No row", seen=[])
    yield _target("a quantity", [str(one) for one in base()["x"]], "quantity", seen=[])
    many = [str(20 + i % 24) for i in range(N_ROWS)]
    yield _target("numbers of more than twenty", many, "quantity|numbers|different", seen=[])
    money = [f"${one}" for one in base()["x"]]
    yield _target("amounts of money", money, "quantity|classes|one row|different", seen=[])
    days = [f"2023-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N_ROWS)]
    yield _target("dates as classes", days, "date|classes|few|one row", seen=[])
    names = [f"person {i}" for i in range(N_ROWS)]
    yield _target("a name in each row", names, "one row|class|every row", seen=[])
    single = list(base()["y"])
    single[10] = "maybe"
    yield _target("a class of one row", single, "one row|few|class")
    sixty = [f"kind {i % 16}" for i in range(N_ROWS)]
    yield _target("many classes", sixty)
    total = list(base()["y"])
    total[-1] = "450"
    yield _target("a total as a class", total, "450")
    head = list(base()["y"])
    head[48] = "y"
    yield _target("the name of the target as a class", head, "'y'|header|one row")
    codes = [("01", "1")[one] for one in truth]
    yield _target("classes 01 and 1", codes, "alike|same|'01'|zero")
    comma = [("0,5", "1,5")[one] for one in truth]
    yield Odd("decimal commas as classes", plain_file(with_cells(y=comma), ";"), {"y": comma}, "quantity|classes")
    long = ["yes" if one else "n" * 2000 for one in truth]
    yield _target("a very long class", long, "signs|long", seen=[])


def leaks() -> Iterator[Odd]:
    """Columns that give the class away."""
    truth, given = is_yes(), "'z'.*(class|separates|target)"
    x = base()["x"]
    copied = [("cured", "ill")[one] for one in truth]
    yield Odd("the target in other words", plain_file(with_cells(z=copied)), None, "other words|separates|gives")
    nearly = [("cured", "ill")[one ^ (i % 33 == 0)] for i, one in enumerate(truth)]
    yield Odd("the target in 97% of rows", plain_file(with_cells(z=nearly)), None, given)
    score = [f"{100 * one + i % 7}" for i, one in enumerate(truth)]
    yield Odd("a number that separates", plain_file(with_cells(z=score)), None, given)
    later = ["" if not one else f"{i % 9}" for i, one in enumerate(truth)]
    yield Odd("missing where one class is", plain_file(with_cells(z=later)), None, given)
    both = ["" if i % 20 == 0 or not one else f"{i % 9}" for i, one in enumerate(truth)]
    yield Odd("missing mostly where one class is", plain_file(with_cells(z=both)), None, given)
    amount = [round(one) for one in x]
    refund = [one if yes else one - 1 - i % 5 for i, (one, yes) in enumerate(zip(amount, truth, strict=True))]
    yield Odd(
        "two columns that are equal in one class",
        plain_file(with_cells(amount=amount, refund=refund)),
        None,
        "(refund.*amount)|(amount.*refund)",
    )
    order = [
        f"{i}"
        for i in np.argsort(np.argsort([one * 1000 + i for i, one in enumerate(truth)], kind="stable"), kind="stable")
    ]
    yield Odd("numbers that follow the class", plain_file(with_cells(z=order)), None, "'z'")


def people() -> Iterator[Odd]:
    """Rows that belong together."""
    rng = draws(6)
    label = rng.integers(0, 2, 16)
    customer = np.repeat(np.arange(16), 6)
    rows = rng.permutation(N_ROWS)
    y = np.array(["no", "yes"])[label[customer]][rows].tolist()
    group = "group-column"
    for name, form in (("customers", "c{}"), ("numbered patients", "{}"), ("cards of 16 digits", "41{:014d}")):
        ids = [form.format(int(one) * 37 + 1000) for one in customer[rows]]
        noise = np.round(rng.normal(size=N_ROWS), 2).tolist()
        yield Odd(f"{name} who come back", plain_file({"customer": ids, "x": noise, "y": y}), None, group)
    once = rng.normal(size=(16, 3))[customer][rows]
    near = once + 1e-6 * rng.normal(size=once.shape)
    table = {name: [f"{one:.9f}" for one in cells] for name, cells in zip(("a", "b", "c"), near.T, strict=True)}
    yield Odd("rows that are nearly equal", plain_file(table | {"y": y}), None, "equal to another but for one cell")
    edited = [[f"{one:.4f}" for one in row] for row in once]
    for i, row in enumerate(edited):
        row[i % 3] = f"{rng.normal():.4f}"
    table = dict(zip(("a", "b", "c"), map(list, zip(*edited, strict=True)), strict=True))
    yield Odd("rows with one cell changed", plain_file(table | {"y": y}), None, "equal to another but for one cell")
    equal = {name: [f"{one:.4f}" for one in cells] for name, cells in zip(("a", "b", "c"), once.T, strict=True)}
    yield Odd("rows that are equal", plain_file(equal | {"y": y}), None, "equal")
    runs = np.repeat(rng.integers(0, 2, 60), 5)
    slow, noise = (np.round(one, 3).tolist() for one in (np.cumsum(rng.normal(size=300)), rng.normal(size=300)))
    table = {"level": slow, "x": noise, "y": np.array(["no", "yes"])[runs].tolist()}
    yield Odd("a sorted file with runs of a class", plain_file(table), None, "neighboring rows of the table resemble")
