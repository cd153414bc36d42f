"""The page and the plain text: the figures, through two templates. The page escapes whatever others wrote."""

from datetime import timedelta
from functools import partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from reports import queries, sentences, words
from reports.figures import Figures
from reports.settings import ReportSettings
from warehouse.snapshot import Snapshot

TITLES = {
    "cost_per_mtok_usd": "Per million tokens",
    "cost_per_request_usd": "Per request",
    "cost_per_task_usd": "Per agent task",
}

_templates = Environment(
    loader=PackageLoader("reports"),
    undefined=StrictUndefined,
    autoescape=select_autoescape(("html.j2",), default=False),
    trim_blocks=True,
    lstrip_blocks=True,
)


def context(
    figures: Figures, snapshot: Snapshot, settings: ReportSettings, *, restated_notice: str | None, remembers: bool
) -> dict[str, Any]:
    """What the templates may say: figures, and the words for them in the snapshot's currency."""
    currency = snapshot.currency
    return {
        "figures": figures,
        "subject": sentences.subject(figures, snapshot.scope.teams, currency, restated_notice is not None),
        "summary": sentences.summary(figures, currency),
        "least": sentences.least(figures),
        "audience": sentences.audience(snapshot.scope.teams),
        "notices": sentences.notices(figures, snapshot, currency),
        "restated_notice": restated_notice,
        "remembers": remembers,
        "forecast": sentences.forecast(figures.month, currency),
        "definition": sentences.definition(),
        "basis": sentences.basis(figures),
        "as_of": sentences.local(snapshot.as_of, snapshot.zone),
        "manifest_id": snapshot.manifest_id,
        "currency": currency,
        "dashboard_url": settings.dashboard_url,
        "titles": TITLES,
        "one_day": timedelta(days=1),
        "together": queries.together,
        "mover_name": sentences.mover_name,
        "reason": sentences.reason,
        "local": sentences.local,
        "parts": partial(_in_currency, sentences.parts, currency),
        "kind_said": words.kind,
        "fleet_said": partial(_in_currency, sentences.fleet, currency),
        "restatement": partial(_in_currency, sentences.restatement, currency),
        "money": partial(_in_currency, words.money, currency),
        "unit_cost": partial(_in_currency, words.unit_cost, currency),
        "signed": partial(_in_currency, words.signed, currency),
        "exact": partial(_in_currency, words.exact, currency),
        **{name: getattr(words, name) for name in
           ("percent", "change", "direction", "count", "tokens", "name", "day", "long_day", "plural", "cause",
            "pool")},
    }  # fmt: skip


def page(said: dict[str, Any]) -> str:
    """One self-contained HTML file, fit for a mail program."""
    return _templates.get_template("daily_cost.html.j2").render(said)


def text(said: dict[str, Any]) -> str:
    """The same as plain text."""
    return _templates.get_template("daily_cost.txt.j2").render(said).strip() + "\n"


def _in_currency(write: Any, default: str, value: Any, currency: str | None = None) -> str:
    written: str = write(value, currency or default)
    return written
