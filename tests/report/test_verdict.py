"""Sentences about how good a model is: their numbers are the counts, and no share is written as what it is not."""

import re

from hypothesis import given
from hypothesis import strategies as st

from qmedoid.metrics.intervals import share_interval
from qmedoid.metrics.texts import percent_text
from qmedoid.report.verdict import alert_ceiling, verdict, weakness

COUNTS = st.integers(0, 5000)
TWO = st.tuples(COUNTS, COUNTS, COUNTS, COUNTS).map(lambda cells: [list(cells[:2]), list(cells[2:])])
MANY = st.integers(3, 6).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 300), min_size=n, max_size=n), min_size=n, max_size=n)
)


def report(confusion, roc_auc=None, labels=("no", "yes", "c", "d", "e", "f")):
    return {"classes": dict.fromkeys(labels[: len(confusion)]), "confusion": confusion, "roc_auc": roc_auc}


def numbers(sentence):
    words = re.sub(r" \(.* %\)", "", sentence).replace(" none ", " 0 ").replace(" no ", " 0 ")
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", words)]


def shares(text):
    """Bounds of the shares that every percentage of a text may be."""
    found = []
    for word, number in re.findall(r"(above |below )?(\d[\d.]*) %", text):
        value, half = float(number), 0.5 * 10.0 ** -len(number.partition(".")[2])
        found.append((value, 100.0) if word == "above " else (0.0, value) if word else (value - half, value + half))
    return found


class TestPercentText:
    @given(st.floats(0, 1), st.sampled_from([2, 3]))
    def test_is_the_share_rounded_and_neither_0_nor_100_falsely(self, share, digits):
        ((low, high),) = shares(percent_text(share, digits))
        assert low - 1e-9 <= 100 * share <= high + 1e-9
        assert (percent_text(share) == "0 %") == (share == 0)
        assert (percent_text(share) == "100 %") == (share == 1)

    @given(st.floats(0.0001, 0.999))
    def test_is_off_by_5_percent_of_the_share_at_most(self, share):
        ((low, high),) = shares(percent_text(share))
        assert abs((low + high) / 2 - 100 * share) <= 5 * share + 1e-9

    def test_has_no_more_digits_than_needed(self):
        assert [*map(percent_text, (0.05, 0.1, 0.0999, 0.99, 0.0017, 0.9994))] == [
            "5 %", "10 %", "10 %", "99 %", "0.17 %", "above 99.9 %",
        ]  # fmt: skip


class TestVerdict:
    @given(TWO, st.booleans())
    def test_numbers_of_the_first_sentence_are_the_counts(self, confusion, alerts):
        (true_negative, false), (missed, found) = confusion
        rows, called, positive = true_negative + false + missed + found, found + false, found + missed
        first = verdict(report(confusion), alerts=alerts)[0]
        told = numbers(first)
        if rows == 0:
            assert told == []
            return
        assert told[:1] == [rows]
        assert ("alert" in first) == alerts
        if positive and called:
            assert told[1] == called
            assert told[-2:] == [found, positive]
            if called > 1 and found not in (0, called):
                assert told[2] == found
        elif positive:
            assert told[-1] == positive

    @given(MANY)
    def test_of_more_classes_says_how_many_are_right_and_names_the_best_and_worst(self, confusion):
        hits, rows = sum(row[code] for code, row in enumerate(confusion)), sum(map(sum, confusion))
        labels = ("aa", "bb", "cc", "dd", "ee", "ff")
        first = verdict(report(confusion, labels=labels))[0]
        if rows == 0:
            return
        told = numbers(first)
        assert told[0] == rows
        assert told[1] == hits if hits < rows else True
        found = {labels[code]: row[code] / sum(row) for code, row in enumerate(confusion) if sum(row)}
        if "best" in first:
            best, worst = re.findall(r"(?:best|worst) at '(\w+)'", first)
            assert found[best] == max(found.values())
            assert found[worst] == min(found.values())
        else:
            assert hits == rows or len(set(found.values())) == 1

    @given(TWO)
    def test_shares_of_the_second_sentence_are_those_of_the_counts(self, confusion):
        (true_negative, false), (missed, found) = confusion
        rows, positive = true_negative + false + missed + found, missed + found
        if not 0 < positive < rows:
            return
        second = verdict(report(confusion))[1]
        if positive < 0.1 * rows and found + false:
            right = share_interval(found, found + false)
            base = positive / rows
        else:
            right = share_interval(true_negative + found, rows)
            base = max(positive, rows - positive) / rows
        told = shares(second.replace(" to ", " % to ", 1) if re.search(r"\d to ", second) else second)
        for value, (low, high) in zip((base, right.value, right.low, right.high), told, strict=True):
            assert low - 1e-9 <= 100 * value <= high + 1e-9

    @given(TWO, st.floats(0, 1), st.booleans())
    def test_a_weak_model_is_called_weak_and_no_other(self, confusion, area, alerts):
        told = weakness(report(confusion, area), alerts=alerts)
        true = [sum(row) for row in confusion]
        rows = sum(true)
        if rows == 0 or 0 in true:
            assert (told is None) == (rows == 0)
            return
        (true_negative, false), (_, found) = confusion
        if told is None:
            assert area > 0.5
            if alerts:
                assert share_interval(found, found + false).low > true[1] / rows
            elif true[1] >= 0.1 * rows:
                assert share_interval(true_negative + found, rows).low > max(true) / rows
        else:
            assert "weak" in told or "too few" in told

    def test_is_weak_where_the_interval_of_the_accuracy_contains_the_guess(self):
        assert "weak" in verdict(report([[28, 22], [20, 30]], 0.9))[-1]
        assert len(verdict(report([[280, 220], [200, 300]], 0.9))) == 2

    def test_is_weak_where_chance_ranks_as_well(self):
        calls = [[70, 30], [30, 70]]  # 0.58 is reached by chance once in 40 times with so many rows
        assert "no better than chance" in verdict(report(calls, 0.57))[-1]
        assert len(verdict(report(calls, 0.6))) == 2

    def test_of_a_perfect_model_of_enough_rows_is_not_weak(self):
        assert len(verdict(report([[50, 0], [0, 50]], 1.0))) == 2
        assert len(verdict(report([[970, 0], [0, 30]], 1.0), alerts=True)) == 2

    def test_of_few_rows_says_so(self):
        assert "2 rows are too few" in verdict(report([[1, 0], [0, 1]], 1.0))[-1]

    def test_of_good_ranks_and_useless_calls_says_what_to_ask_for(self):
        assert "alert rate" in verdict(report([[1425, 0], [75, 0]], 0.8))[-1]

    def test_compares_rare_events_with_random_alerts(self):
        _, second = verdict(report([[3553, 1], [87, 36]], 0.98), alerts=True)
        assert "random alerts" in second
        assert "29 times" in second

    def test_names_the_rows_as_it_is_told(self):
        told = verdict(report([[30, 5], [5, 30]]), rows="of march.csv")[0]
        assert told.startswith("Of 70 rows of march.csv, it calls 35 'yes': 30 rightly; it finds 30 of 35.")

    def test_calls_no_row_new_that_was_in_the_fit(self):
        seen = report([[30, 5], [5, 30]]) | {"seen": {"rows": 60, "checked": 70}}
        told = verdict(seen)[0]
        assert told.startswith("Of 70 rows (60 of them were in the fit), it calls")
        assert "never saw" in verdict(seen | {"seen": {"rows": 0, "checked": 70}})[0]
        assert "never saw" in verdict(seen | {"left_out": {"seen": 60}})[0]

    def test_escapes_names_of_classes(self):
        assert "\x1b" not in verdict(report([[30, 5], [5, 30]], labels=("a", "\x1b[2J")))[0]


class TestAlertCeiling:
    @given(st.floats(1e-4, 0.9), st.floats(1e-4, 0.9))
    def test_is_told_where_not_all_can_be_found(self, rate, prevalence):
        told = alert_ceiling(rate, prevalence, "yes")
        assert (told is None) == (rate >= prevalence)
        if told is not None:
            for value, (low, high) in zip((rate, rate / prevalence, prevalence, prevalence), shares(told), strict=True):
                assert low - 1e-9 <= 100 * value <= high + 1e-9

    def test_of_one_percent_of_fraud(self):
        assert "cannot find more than 30 % of '1', which is 3.35 % of the rows" in alert_ceiling(0.01, 0.0335, 1)
