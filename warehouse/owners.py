"""Owner rules as tables, so that the engine joins them with claim sets."""

import hashlib
import json
from itertools import pairwise

import duckdb

from warehouse import waterfall
from warehouse.settings import OwnerRule, WarehouseSettings

# What the caller's key proves. Everything else is the payload's own word.
CREDENTIAL_CLAIMS = frozenset(
    {"key_alias", "key_hash", "team_id", "team_alias", "organization", "project", "principal"}
)


def is_credential(rule: OwnerRule) -> bool:
    """Whether a rule rests on at least one claim that the caller could not simply write."""
    return any(claim in CREDENTIAL_CLAIMS for claim in rule.when)


def ranked(rules: tuple[OwnerRule, ...]) -> list[tuple[int, OwnerRule]]:
    """Rules with their number in the configuration, credentials first, order kept otherwise."""
    numbered = list(enumerate(rules, start=1))
    return sorted(numbered, key=lambda item: (not is_credential(item[1]), item[0]))


def like_pattern(glob: str) -> str:
    """A glob as a LIKE pattern with `!` as its escape: `*` any text, `?` one character."""
    escaped = glob.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return escaped.replace("*", "%").replace("?", "_")


def split_template(template: str) -> tuple[str, str | None, str]:
    """Text before, claim named, text after: "team-{tag.app}" -> ("team-", "tag.app", "")."""
    start, brace, rest = template.partition("{")
    if not brace:
        return start, None, ""
    claim, _, end = rest.partition("}")
    return start, claim, end


def digest(settings: WarehouseSettings) -> str:
    """Changes when a rule does."""
    rules = [rule.model_dump(mode="json", by_alias=True) for rule in settings.owners]
    return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()[:32]


def load_rules(connection: duckdb.DuckDBPyConnection, settings: WarehouseSettings) -> None:
    """Fill the temporary tables that 90_claim_owner.sql reads."""
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE owner_rule (
            rule_rank INTEGER, rule_name VARCHAR, valid_from TIMESTAMP, valid_to TIMESTAMP, condition_count INTEGER);
        CREATE OR REPLACE TEMP TABLE owner_condition (rule_rank INTEGER, claim VARCHAR, pattern VARCHAR);
        CREATE OR REPLACE TEMP TABLE owner_value (
            rule_rank INTEGER, dimension VARCHAR, template_start VARCHAR, claim VARCHAR, template_end VARCHAR);
        """
    )
    cuts = {"1970-01-01", "9999-12-31"}
    for rank, (number, rule) in enumerate(ranked(settings.owners), start=1):
        when = ", ".join(f"{claim}: {pattern}" for claim, pattern in rule.when.items())
        connection.execute(
            "INSERT INTO owner_rule VALUES (?, ?, ?, ?, ?)",
            [rank, f"rule {number} ({when})", rule.valid_from, rule.valid_to, len(rule.when)],
        )
        cuts |= {rule.valid_from.isoformat(), rule.valid_to.isoformat()}
        for claim, pattern in rule.when.items():
            connection.execute("INSERT INTO owner_condition VALUES (?, ?, ?)", [rank, claim, like_pattern(pattern)])
        for dimension, template in rule.set.items():
            connection.execute(
                "INSERT INTO owner_value VALUES (?, ?, ?, ?, ?)", [rank, dimension, *split_template(template)]
            )
    ordered = sorted(cuts)
    connection.execute("CREATE OR REPLACE TEMP TABLE owner_period (valid_from TIMESTAMP, valid_to TIMESTAMP)")
    for start, end in pairwise(ordered):
        connection.execute("INSERT INTO owner_period VALUES (?, ?)", [start, end])
    connection.execute(
        """
        CREATE OR REPLACE TEMP VIEW claim_set_key AS SELECT DISTINCT claim_set_id FROM claim_set;
        CREATE OR REPLACE TEMP VIEW claim_value AS
        SELECT DISTINCT claim_set_id, e.entry.key AS name, e.entry.value AS value
        FROM (SELECT claim_set_id, unnest(map_entries(claims)) AS entry FROM claim_set) AS e;
        """
    )


def resolve(connection: duckdb.DuckDBPyConnection, settings: WarehouseSettings) -> None:
    """Rebuild `claim_owner` (claim set x period -> owners) from the present rules."""
    load_rules(connection, settings)
    connection.execute(f"CREATE OR REPLACE TABLE claim_owner AS {waterfall.text('90_claim_owner')}")
