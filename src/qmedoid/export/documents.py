"""JSON documents of exports."""

from typing import Annotated, TypedDict


class OddRowDict(TypedDict):
    row: Annotated[int, "Row of the table, counted from 0."]
    prediction: Annotated[str, "The class by the model."]
    found: Annotated[str | None, "The class by the export; null if it has no result."]
    why: Annotated[str, "What is odd about its cells in the engine; empty if nothing is known."]


class EngineCheckDict(TypedDict):
    engine: Annotated[str, "What ran the export, and how it read the table."]
    rows: Annotated[int, "Rows of the table."]
    agree: Annotated[int, "Rows with the results of the model."]
    refused: Annotated[int, "Rows without a result."]
    largest_difference: Annotated[float | None, "Of probabilities, or margins if there are none; null without results."]
    first: Annotated[OddRowDict | None, "The first row that does not agree."]
