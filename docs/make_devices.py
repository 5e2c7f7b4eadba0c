"""Makes the tables of ``docs/devices.md`` from what ``qmedoid reproduce devices`` left in ``benchmarks/results``.

Tables of speed and of trained circuits are from scripts in ``benchmarks``.

``python docs/make_devices.py`` writes them between the markers of the page.
``python docs/make_devices.py --check`` writes nothing and fails when the page differs from what would be written.
Both only read files; nothing is fitted or measured.
"""

import argparse
import csv
import sys
from pathlib import Path

from marked_sections import Row, table, write_or_check

Record = dict[str, str]

FOLDER = Path(__file__).parent
PAGE = FOLDER / "devices.md"
RESULTS = FOLDER.parent / "benchmarks" / "results" / "devices"
SPEED = RESULTS.parent / "speed_devices.csv"
TRAINED = RESULTS.parent / "trained_on_devices.csv"
COMMAND = "qmedoid reproduce devices -o devices"
MODELS = {"default": "default", "printed": "as printed"}
FEW, MOST = "1024", "4096"
NOISELESS = "no noise"
EVERYWHERE = ("model", "data", "circuit", "device", "shots")


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    return {
        "provenance": provenance(),
        "findings": "\n".join(f"- {line}" for line in lines("findings.txt")),
        "goals": goals(),
        "printed": decisions("as printed"),
        "default": decisions("default"),
        "noise_alone": noise_alone(),
        "shots": shots(),
        "errors": errors(),
        "wide": wide_errors(),
        "circuits": circuits(),
        "shapes": shapes(),
        "trained": trained(),
        "speed": speed(),
    }


def lines(name: str, folder: Path = RESULTS) -> list[str]:
    """The lines of a file of the run; ends the program where it is not there."""
    path = folder / name
    if not path.exists():
        sys.exit(
            f"There is no benchmarks/results/{path.relative_to(RESULTS.parent)}. Run '{COMMAND}' and copy findings.txt "
            "and the CSV files of its folder to benchmarks/results/devices; benchmarks/speed_devices.py makes one."
        )
    return path.read_text(encoding="utf-8").splitlines()


def read(name: str) -> list[Record]:
    """The rows of a table of the run; its first line says how it was made."""
    return list(csv.DictReader(lines(f"{name}.csv")[1:]))


def provenance() -> str:
    """Command, seed and versions, which every file begins with."""
    comments = {lines(path.name)[0] for path in RESULTS.glob("*.csv")} or {lines("device_goals.csv")[0]}
    if len(comments) > 1:
        sys.exit("The files of benchmarks/results/devices are of several runs:\n" + "\n".join(sorted(comments)))
    said = dict(part.split(": ", 1) for part in comments.pop().removeprefix("# ").split(" | "))
    return f"`{said.pop('command')}`, {', '.join(f'{name} {value}' for name, value in said.items())}."


def percent(share: str) -> str:
    """A share in percent; empty where there is none."""
    return f"{100 * float(share):.1f} %" if share else ""


def small(value: str, digits: int = 4) -> str:
    """A number with few decimals; empty where there is none."""
    return f"{float(value):.{digits}f}" if value else ""


def goals() -> str:
    """Every goal by table and device, and whether it is met."""
    found: dict[tuple[str, str, str], dict[tuple[str, str], Record]] = {}
    for row in read("device_goals"):
        if row["device"] != NOISELESS:
            key = row["goal"], row["wanted"], row["shots"]
            found.setdefault(key, {})[row["data"], row["device"]] = row
    places = sorted({place for own in found.values() for place in own}, key=lambda place: (place[1], place[0]))
    rows: list[Row] = []
    for (goal, wanted, shots), own in sorted(found.items(), key=lambda item: (int(item[0][2] or 0), item[0][0])):
        cells = []
        for place in places:
            value = own[place]["measured"]
            text = f"{float(value):.0f}" if not shots else small(value, 3)
            cells.append(text if own[place]["met"] == "yes" else f"**{text}**")
        rows.append([goal, wanted, f"{int(shots):,}" if shots else "", *cells])
    return table(["goal", "wanted", "shots", *(f"{data}, {device}" for data, device in places)], rows, 2)


def joined() -> list[Record]:
    """Decisions and errors of the same measurement in one record, with the gates of its widest circuit."""
    others = {tuple(row[name] for name in EVERYWHERE): row for row in read("device_errors")}
    cost = {tuple(row[name] for name in EVERYWHERE[:4]): row for row in read("device_circuits")}
    return [
        row | others[tuple(row[name] for name in EVERYWHERE)] | cost[tuple(row[name] for name in EVERYWHERE[:4])]
        for row in read("device_decisions")
    ]


def decisions(model: str) -> str:
    """What is left of a model's decisions on noisy devices, raw and calibrated, at the most shots."""
    rows: list[Row] = []
    for row in joined():
        if row["model"] == model and row["shots"] == MOST and row["device"] != NOISELESS:
            rows.append([
                row["data"], row["device"], row["circuit"], row["records"],
                small(row["error of s: raw"]), small(row["error of s: calibrated"]),
                small(row["error of the margin: raw"], 3), small(row["error of the margin: calibrated"], 3),
                percent(row["raw: kept"]), percent(row["calibrated: kept"]), percent(row["calibrated: kept of clear"]),
                percent(row["raw: accuracy"]), percent(row["calibrated: accuracy"]),
                percent(row["closed form: accuracy"]),
            ])  # fmt: skip
    header = ["data", "device", "circuit", "records", "error of s: raw", "calibrated", "of the margin: raw",
              "calibrated", "decisions kept: raw", "calibrated", "of clear ones", "accuracy: raw", "calibrated",
              "closed form"]  # fmt: skip
    return table(header, sorted(rows, key=lambda row: str(row[0])), 3)


def noise_alone() -> str:
    """What is left of the paper's model and of the default without shot noise."""
    rows: list[Row] = []
    for row in joined():
        if row["shots"] == "∞" and row["device"] != NOISELESS and row["model"] == "as printed":
            rows.append([row["data"], row["device"], row["circuit"], row["widest test: gates between qubits"],
                         small(row["error of s: raw"]), small(row["error of s: calibrated"]),
                         percent(row["raw: kept"]), percent(row["calibrated: kept"])])  # fmt: skip
    header = ["data", "device", "circuit", "gates between qubits", "error of s: raw", "calibrated",
              "decisions kept: raw", "calibrated"]  # fmt: skip
    return table(header, rows, 3)


def shots() -> str:
    """Decisions kept by packed columns at every number of shots, of both models."""
    found = [row for row in joined() if row["circuit"] == "packed columns" and row["shots"] != "∞"]
    numbers = sorted({row["shots"] for row in found}, key=int)
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in found:
        kept = row["calibrated: kept"] or row["raw: kept"]
        rows.setdefault((row["model"], row["data"], row["device"]), {})[row["shots"]] = percent(kept)
    header = ["model", "data", "device", *(f"{int(number):,} shots" for number in numbers)]
    return table(header, [[*key, *(own[number] for number in numbers)] for key, own in rows.items()], 3)


def errors() -> str:
    """Errors of the default model's margins by packed columns: measured, stated and planned."""
    rows: list[Row] = []
    for row in joined():
        if row["circuit"] == "packed columns" and row["model"] == "default" and row["shots"] in (FEW, MOST):
            measured = row["error of the margin: calibrated"] or row["error of the margin: raw"]
            of_s = row["error of s: calibrated"] or row["error of s: raw"]
            honest = row["errors of s over stated ones: calibrated"] or row["errors of s over stated ones: raw"]
            least, most = (small(row[f"error of the margin: {end} of a run"], 3) for end in ("least", "most"))
            rows.append([
                row["data"], row["device"], f"{int(row['shots']):,}", small(of_s), small(row["error of s: planned"]),
                small(honest, 2), small(measured, 3), f"{least} to {most}", small(row["error of the margin: shift"], 3),
                small(row["error of the margin: stated"], 3), small(row["error of the margin: planned"], 3),
            ])  # fmt: skip
    header = ["data", "device", "shots", "error of s", "planned", "over stated ones", "error of the margin",
              "of single runs", "shift", "stated", "planned"]  # fmt: skip
    return table(header, rows, 2)


def wide_errors() -> str:
    """Errors of the default model's margins by circuits of many columns on noisy devices, calibrated."""
    rows: list[Row] = []
    for row in joined():
        noisy = row["device"] != NOISELESS and row["circuit"] != "packed columns"
        if noisy and row["model"] == "default" and row["shots"] == MOST:
            actual, stated, planned = (
                float(row[f"error of the margin: {kind}"]) for kind in ("calibrated", "stated", "planned")
            )
            rows.append([
                row["data"], row["device"], row["circuit"], row["records"],
                small(row["errors of s over stated ones: calibrated"], 2), *(f"{one:.3f}" for one in (actual, stated)),
                f"{actual / stated:.2f}", f"{planned / actual:.2f}",
            ])  # fmt: skip
    header = ["data", "device", "circuit", "records", "errors of s over stated ones", "error of the margin", "stated",
              "over stated", "planned over actual"]  # fmt: skip
    return table(header, rows, 3)


def circuits() -> str:
    """Circuits, gates and seconds of a record on fake Torino."""
    rows: list[Row] = []
    for row in read("device_circuits"):
        if row["device"] == "fake Torino":
            rows.append([
                row["model"], row["data"], row["circuit"], row["circuits of a record: alone, most"],
                row["circuits of a record: together"], row["widest test: qubits"], row["widest test: side by side"],
                row["widest test: gates between qubits"], row["widest test: depth"], row["device seconds of a record"],
            ])  # fmt: skip
    header = ["model", "data", "circuit", "circuits of a record alone", "together", "qubits", "side by side",
              "gates between qubits", "depth", "device seconds"]  # fmt: skip
    return table(header, rows, 3)


def shapes() -> str:
    """Gates of each width, and what noise leaves of an overlap."""
    found: dict[tuple[int, str], dict[str, Record]] = {}
    for row in read("device_shapes"):
        found.setdefault((int(row["columns"]), row["circuit"]), {})[row["device"]] = row
    devices = list(dict.fromkeys(row["device"] for row in read("device_shapes")))
    rows: list[Row] = []
    for (columns, circuit), own in sorted(found.items()):
        cells = []
        for device in devices:
            row = own.get(device)
            cells += ["", "", ""] if row is None else [row["gates between qubits"], small(row["slope: mean"], 3),
                                                       small(row["left over"])]  # fmt: skip
        rows.append([columns, circuit, *cells])
    header = ["columns", "circuit"]
    for device in devices:
        header += [f"{device}: gates", "slope", "left over"]
    return table(header, rows, 2)


def trained() -> str:
    """What trained circuits showed, from what ``benchmarks/trained_on_devices.py`` left."""
    found = list(csv.DictReader(lines(TRAINED.name, TRAINED.parent)[1:]))
    names = ["model", "device", "shots", "two-qubit gates", "slope", "raw error of values", "error of values", "z",
             "planned error of margins", "stated error of margins", "error of margins",
             "decided as the closed form"]  # fmt: skip
    rows: list[Row] = [
        [row[name].replace("fake_", "fake ").title().replace("Fake", "fake") if name == "device" else
         _number(row[name]) if name in ("shots", "two-qubit gates") else row[name] for name in names]
        for row in found
    ]  # fmt: skip
    return table(names, rows, 2)


def speed() -> str:
    """What a thousand records take, and what loops over samplers would."""
    found = list(csv.DictReader(lines(SPEED.name, SPEED.parent)[1:]))
    names = ["table", "records", "circuits", "method", "wall seconds", "core seconds", "core ms per circuit", "note"]
    rows: list[Row] = [[_number(row[name]) if name != "note" else row[name] for name in names] for row in found]
    return table(names, rows, 1)


def _number(text: str) -> str:
    """A number as it is read easily, and any other text as it is."""
    try:
        value = float(text)
    except ValueError:
        return text
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    write_or_check(PAGE, sections(), check=arguments.check)
