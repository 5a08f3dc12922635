"""Answers as dicts that a notebook shows as a sentence and a table."""
from html import escape

MOST_COLUMNS, MOST_ROWS = 8, 20


class Answer(dict):
    """The JSON of a command."""

    def _repr_html_(self):
        sentence, rows = _sentence(self), _rows(self)
        if not rows:
            return f"<p>{escape(sentence)}</p>"
        head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
        body = "".join("<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row.values()) + "</tr>"
                       for row in rows[:MOST_ROWS])
        more = f"<p>{len(rows) - MOST_ROWS} more</p>" if len(rows) > MOST_ROWS else ""
        return f"<p>{escape(sentence)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _sentence(answer):
    """What the command says in words; a forecast says its speed-up."""
    for text in (answer.get("verdict"), answer.get("answer")):
        if isinstance(text, str) and " " in text:
            return text
    run = answer.get("run", {})
    if run.get("verdict_words"):
        return f"{run['verdict_words'].capitalize()}: {run['speedup_vs_baseline']:.2f}x as fast as {run['baseline_optimizer']}"
    return ""


def _rows(answer):
    """The rows of the first list of dicts, without what is nested in them, or the figures of the run."""
    for value in answer.values():
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            names = [name for name in value[0] if not any(isinstance(row.get(name), (dict, list)) for row in value)]
            return [{name: row.get(name) for name in names[:MOST_COLUMNS]} for row in value]
    return [{"figure": name, "value": value} for name, value in answer.get("run", {}).items()]


def _cell(value):
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
